import { useCallback, useState } from "preact/hooks";

const PREFIX = "outbox-relay-demo.";

/** A choice that outlives the page, where the browser allows that. */
export function useRemembered(name: string, initial: string): readonly [string, (value: string) => void] {
  const [value, setValue] = useState(() => read(name) ?? initial);
  const change = useCallback(
    (next: string) => {
      setValue(next);
      try {
        localStorage.setItem(PREFIX + name, next);
      } catch {
        // Then it lasts as long as the page.
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
