import { apiUrl } from "./api.ts";
import { Button } from "./button.tsx";
import { session } from "./session.ts";
import { useStore } from "./store.ts";

/** Exports all events that match the filter, not only the listed ones. Needs the permission to see payloads. */
export function ExportLinks({ list, q }: { readonly list: "events" | "dead-letters"; readonly q: string }) {
  const maySee = useStore(session)?.identity?.maySeePayloads ?? false;
  if (!maySee) return null;
  return (
    <span class="row tight">
      {(["json", "csv"] as const).map((format) => (
        <Button
          key={format}
          kind="quiet"
          icon="save"
          href={apiUrl(`/${list}/export`, { q, format })}
          title={`Export all matches as ${format.toUpperCase()}; the audit records it`}
        >
          {format.toUpperCase()}
        </Button>
      ))}
    </span>
  );
}
