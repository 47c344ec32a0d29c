import { useEffect, useRef } from "preact/hooks";
import { Button } from "../kit/button.tsx";
import { createStore, useStore } from "../kit/store.ts";
import { toast } from "../kit/toast.tsx";
import type { Overview } from "../kit/types.ts";
import { useLive } from "./live-overview.ts";
import { noticeBetween } from "./notice.ts";

const KEY = "outbox-relay.notify";
/** Minimum time between notifications; one notification sums up all changes. */
const EVERY_MS = 60_000;

/** Browsers support notifications only in secure contexts. */
const isPossible = "Notification" in globalThis && globalThis.isSecureContext;
const isOn = createStore(isPossible && Notification.permission === "granted" && isWanted());

/** If storage is blocked, the choice lasts until the page is closed. */
function isWanted(): boolean {
  try {
    return localStorage.getItem(KEY) === "on";
  } catch {
    return false;
  }
}

function turn(on: boolean): void {
  isOn.set(on);
  try {
    localStorage.setItem(KEY, on ? "on" : "off");
  } catch {
    // Storage is blocked.
  }
}

async function toggle(): Promise<void> {
  if (isOn.get()) {
    turn(false);
    toast("Notifications are off in this browser.");
  } else if ((await Notification.requestPermission()) === "granted") {
    turn(true);
    toast(
      "While a tab of the console is open, this browser notifies you when health gets worse and of new dead letters.",
    );
  } else toast("The browser blocks notifications: allow them in its settings for this site.", { tone: "bad" });
}

/** Off by default; the choice applies to this browser only. */
export function NotifyButton() {
  const on = useStore(isOn);
  useNotices(on);
  if (!isPossible) return null;
  const label = on
    ? "Turn off notifications in this browser"
    : "Notify me of worse health and new dead letters in this browser";
  return <Button kind="quiet" icon={on ? "bell" : "bellOff"} label={label} onClick={() => void toggle()} />;
}

function useNotices(on: boolean): void {
  const { overview } = useLive();
  const lastSeen = useRef<Overview | null>(null);
  const toldMs = useRef(Number.NEGATIVE_INFINITY);
  useEffect(() => {
    if (overview === null) return;
    const before = lastSeen.current;
    const notice = before === null || !on ? null : noticeBetween(before, overview);
    if (notice === null) {
      lastSeen.current = overview;
      return;
    }
    if (performance.now() - toldMs.current < EVERY_MS) return;
    toldMs.current = performance.now();
    lastSeen.current = overview;
    const shown = new Notification(overview.service, { body: notice, tag: KEY });
    shown.onclick = () => {
      focus();
      shown.close();
    };
  }, [overview, on]);
}
