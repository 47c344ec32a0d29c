import { Badge } from "../../kit/badge.tsx";
import { Empty } from "../../kit/error-box.tsx";
import { Card } from "../../kit/page.tsx";
import type { ShownEvent } from "../../kit/types.ts";
import { type HeaderRow, headerRows } from "./header-rows.ts";

/** Headers as they are stored, and as they went out with the last attempt that was recorded. */
export function HeadersCard({ event }: { readonly event: ShownEvent }) {
  const sent = event.delivery.findLast(({ headers }) => headers !== null)?.headers ?? null;
  const rows = headerRows(event.headers, sent);
  const note =
    sent === null ? "as stored; how they went out was not recorded" : "as stored, and as they were sent last";
  return (
    <Card title="Headers" note={note} isFlush>
      {rows.length === 0 ? (
        <Empty title="It has none" icon="dot" />
      ) : (
        <div class="table headers">
          <table aria-label="Headers">
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">{sent === null ? "Value" : "Stored"}</th>
                {sent !== null && <th scope="col">Sent</th>}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <HeaderLine key={row.name} row={row} hasSent={sent !== null} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  );
}

function HeaderLine({
  row: { name, stored, sent, how },
  hasSent,
}: {
  readonly row: HeaderRow;
  readonly hasSent: boolean;
}) {
  return (
    <tr>
      <td data-label="Name">
        <code>{name === "" ? "(not an object)" : name}</code>
      </td>
      <td data-label="Stored">{stored === null ? <span class="faint">–</span> : <code>{stored}</code>}</td>
      {hasSent && (
        <td data-label="Sent">
          {sent !== null && how !== "same" && <code>{sent} </code>}
          {how === "same" ? (
            <span class="faint">the same</span>
          ) : (
            <Badge tone={how === "added" ? "accent" : "warn"}>{how}</Badge>
          )}
        </td>
      )}
    </tr>
  );
}
