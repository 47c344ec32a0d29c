import { useState } from "preact/hooks";
import { Badge } from "../../kit/badge.tsx";
import { Button, CliButton } from "../../kit/button.tsx";
import { Empty } from "../../kit/error-box.tsx";
import { countText, plural } from "../../kit/format.ts";
import { Card } from "../../kit/page.tsx";
import { LongText, PlainText } from "../../kit/plain-text.tsx";
import type { ShownEvent } from "../../kit/types.ts";
import { eventShowLine } from "../cli-lines.ts";
import { type HeaderRow, headerRows } from "./header-rows.ts";

const ROWS_FIRST = 50;
/** More rows would slow the page down. */
const ROWS_MAX = 1_000;
const VALUE_CHARS = 1_000;

/** Headers as stored, and as sent with the last recorded attempt. */
export function HeadersCard({ event }: { readonly event: ShownEvent }) {
  const sent = event.delivery.findLast(({ headers }) => headers !== null)?.headers ?? null;
  const rows = headerRows(event.headers, sent);
  const [isAll, setAll] = useState(false);
  const shown = rows.slice(0, isAll ? ROWS_MAX : ROWS_FIRST);
  const left = rows.length - shown.length;
  const note = sent === null ? "as stored; sent headers were not recorded" : "as stored, and as last sent";
  return (
    <Card title="Headers" note={note} isFlush>
      {rows.length === 0 ? (
        <Empty title="No headers" icon="dot" />
      ) : (
        <>
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
                {shown.map((row) => (
                  <HeaderLine key={row.name} row={row} hasSent={sent !== null} />
                ))}
              </tbody>
            </table>
          </div>
          {left > 0 && !isAll && (
            <Button kind="quiet" icon="down" onClick={() => setAll(true)}>
              {`Show ${rows.length > ROWS_MAX ? countText(ROWS_MAX) : "all"} of ${plural(rows.length, "header")}`}
            </Button>
          )}
          {left > 0 && isAll && (
            <p class="faint relation">
              {countText(left)} more are not shown here: <CliButton command={eventShowLine(event.id, event.source)} />
            </p>
          )}
        </>
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
        <code>{name === "" ? "(not an object)" : <PlainText text={name} />}</code>
      </td>
      <td data-label="Stored">
        {stored === null ? (
          <span class="faint">–</span>
        ) : (
          <code>
            <LongText text={stored} charsMax={VALUE_CHARS} />
          </code>
        )}
      </td>
      {hasSent && (
        <td data-label="Sent">
          {sent !== null && how !== "same" && (
            <code>
              <LongText text={sent} charsMax={VALUE_CHARS} />{" "}
            </code>
          )}
          {how === "same" ? (
            <span class="faint">same</span>
          ) : (
            <Badge tone={how === "added" ? "accent" : "warn"}>{how}</Badge>
          )}
        </td>
      )}
    </tr>
  );
}
