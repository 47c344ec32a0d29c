import { useEffect, useRef, useState } from "preact/hooks";
import { apiUrl, sessionEnds } from "./api.ts";
import { type QueryValues, queryText } from "./place.ts";

/** `off`: not requested, or the page is hidden. `stale`: the shown data may be old; the stream is reconnecting. */
export type LiveState = "off" | "connecting" | "live" | "stale";

type Listeners = Readonly<Record<string, (data: unknown) => void>>;

const RETRY_FIRST_MS = 1_000;
const RETRY_LAST_MS = 15_000;

interface StreamOptions {
  /** Reconnect after this time without a message. For streams that send at regular intervals. */
  readonly quietMsMax?: number;
}

/**
 * Server-sent events while the page is visible: browsers allow few connections per server, so a background tab must not
 * hold one. Reconnects by itself.
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
  // `text` and `names` stand for query and listeners: strings stay equal across renders, objects do not.
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
  report: (state: LiveState) => void,
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
    report("stale");
    failures += 1;
    // EventSource hides the status code: loading the session finds out whether it has ended.
    if (failures === 1) sessionEnds.set(sessionEnds.get() + 1);
    timer = setTimeout(open, Math.min(RETRY_LAST_MS, RETRY_FIRST_MS * 2 ** (failures - 1)));
  };
  const heard = () => {
    failures = 0;
    report("live");
    clearTimeout(quiet);
    if (quietMsMax > 0) quiet = setTimeout(fail, quietMsMax);
  };
  function open(): void {
    close();
    if (document.hidden) {
      report("off");
      return;
    }
    if (failures === 0) report("connecting");
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
