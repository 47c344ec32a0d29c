import { useCallback, useState } from "preact/hooks";

const PREFIX = "outbox-relay-demo.";

/** A choice that survives a reload, unless the browser blocks storage. */
export function useRemembered(name: string, initial: string): readonly [string, (value: string) => void] {
  const [value, setValue] = useState(() => read(name) ?? initial);
  const change = useCallback(
    (next: string) => {
      setValue(next);
      try {
        localStorage.setItem(PREFIX + name, next);
      } catch {
        // Storage is blocked: the choice lasts until the page is closed.
      }
    },
    [name],
  );
  return [value, change];
}

function read(name: string): string | null {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}
