import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { outage } from "../kit/api.ts";
import { QuestionDialog } from "../kit/dialog.tsx";
import { Skeleton } from "../kit/error-box.tsx";
import { Icon } from "../kit/icons.tsx";
import { usePlace } from "../kit/router.ts";
import { loadSession, session } from "../kit/session.ts";
import { useStore } from "../kit/store.ts";
import { timeZone } from "../kit/time-zone.ts";
import { Toasts } from "../kit/toast.tsx";
import { screenAt } from "../screens/screens.tsx";
import { useLive, useLiveStream } from "./live-overview.ts";
import { Login, returnToPlace } from "./login.tsx";
import { Navigation } from "./navigation.tsx";
import { Shortcuts } from "./shortcuts.tsx";

const ASK_AGAIN_MS = 3_000;

export function App() {
  const known = useStore(session);
  const isOut = useStore(outage) !== null;
  useEffect(() => {
    void loadSession();
    // Only until the session is loaded: after that any answer with status 401 reports its end.
    const timer = setInterval(() => session.get() === null && void loadSession(), ASK_AGAIN_MS);
    return () => clearInterval(timer);
  }, []);
  if (known === null) return isOut ? <Waiting /> : <Skeleton lines={3} />;
  return known.identity === null ? <Login session={known} /> : <Console />;
}

function Waiting() {
  return (
    <main class="login">
      <div class="outage" role="alert">
        <Icon name="unplug" />
        <h1>The service does not answer</h1>
        <p>This page retries and continues automatically.</p>
      </div>
    </main>
  );
}

function Console() {
  useLiveStream(true);
  useEffect(returnToPlace, []);
  return (
    <div class="console">
      <button type="button" class="skip" onClick={() => document.getElementById("main")?.focus()}>
        Skip to content
      </button>
      <Navigation />
      <div class="content">
        <OutageBar />
        <DemoSlot />
        <main id="main" tabIndex={-1}>
          <Screen />
        </main>
      </div>
      <Shortcuts />
      <QuestionDialog />
      <Toasts />
    </div>
  );
}

function Screen() {
  const place = usePlace();
  // The zone is part of the key: a new zone renders every time again.
  const zone = useStore(timeZone);
  const { Screen: Shown, params } = screenAt(place.path);
  useEffect(() => scrollTo(0, 0), [place.path]);
  return <Shown key={`${place.path} ${zone}`} params={params} query={place.query} />;
}

/** Shown above the screen while its data may be stale. */
function OutageBar() {
  const error = useStore(outage);
  const { state } = useLive();
  if (error === null) return null;
  return (
    <div class="outage-bar" role="alert">
      <Icon name="unplug" />
      <span>
        {error.status === 0 ? "The service does not answer." : "The database does not answer."} The data on this page
        may be old{state === "live" ? "" : " and is not live"}; the page retries automatically.
      </span>
    </div>
  );
}

/** The demo panel of `npm start`. Not loaded anywhere else. See demo/README.md. */
function DemoSlot() {
  const isDemo = useStore(session)?.isDemo ?? false;
  const [Panel, setPanel] = useState<ComponentType | null>(null);
  useEffect(() => {
    if (isDemo) void import("../demo/demo-panel.tsx").then(({ DemoPanel }) => setPanel(() => DemoPanel));
  }, [isDemo]);
  return Panel === null ? null : <Panel />;
}
