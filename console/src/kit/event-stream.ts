import { useEffect, useRef, useState } from "preact/hooks";
import { apiUrl, sessionEnds } from "./api.ts";
import { type QueryValues, queryText } from "./place.ts";

/** `off`: nobody asked for it, or nobody looks at the page. `stale`: what is shown may be old; it is being mended. */
export type LiveState = "off" | "connecting" | "live" | "stale";

type Listeners = Readonly<Record<string, (data: unknown) => void>>;

const RETRY_FIRST_MS = 1_000;
const RETRY_LAST_MS = 15_000;

interface StreamOptions {
  /** Silence for longer than this is a fault; for streams that speak at regular times. */
  readonly quietMsMax?: number;
}

/**
 * Server-sent events for as long as the page is looked at: browsers allow few connections to one server, and a tab in the
 * background must not hold one. After a break it connects again by itself.
 */
export function useEventStream(
  path: string | null,
  query: QueryValues,
  listeners: Listeners,
  { quietMsMax = 0 }: StreamOptions = {},
): LiveState {
  const [state, setState] = useState<LiveState>("off");
  const current = useRef(listeners);
  current.current = listeners;
  const names = Object.keys(listeners).join();
  const text = queryText(query);
  // Text and names hold what query and listeners hold, and stay the same while those do.
  useEffect(() => {
    if (path === null) return setState("off");
    return openStream(apiUrl(path, query), names.split(","), current, quietMsMax, setState);
  }, [path, text, names, quietMsMax]);
  return state;
}

function openStream(
  url: string,
  names: readonly string[],
  listeners: { readonly current: Listeners },
  quietMsMax: number,
  tell: (state: LiveState) => void,
): () => void {
  let source: EventSource | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let quiet: ReturnType<typeof setTimeout> | undefined;
  let failures = 0;
  const close = () => {
    source?.close();
    source = null;
    clearTimeout(timer);
    clearTimeout(quiet);
  };
  const fail = () => {
    close();
    tell("stale");
    failures += 1;
    // The browser does not say why it was refused; whoever asks for the session finds out.
    if (failures === 1) sessionEnds.set(sessionEnds.get() + 1);
    timer = setTimeout(open, Math.min(RETRY_LAST_MS, RETRY_FIRST_MS * 2 ** (failures - 1)));
  };
  const heard = () => {
    failures = 0;
    tell("live");
    clearTimeout(quiet);
    if (quietMsMax > 0) quiet = setTimeout(fail, quietMsMax);
  };
  function open(): void {
    close();
    if (document.hidden) {
      tell("off");
      return;
    }
    if (failures === 0) tell("connecting");
    source = new EventSource(url);
    source.addEventListener("open", heard);
    source.addEventListener("error", fail);
    for (const name of names) {
      source.addEventListener(name, (event) => {
        heard();
        listeners.current[name]?.(JSON.parse((event as MessageEvent<string>).data));
      });
    }
  }
  document.addEventListener("visibilitychange", open);
  open();
  return () => {
    document.removeEventListener("visibilitychange", open);
    close();
  };
}
