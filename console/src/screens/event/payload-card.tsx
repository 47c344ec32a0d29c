import { useMemo } from "preact/hooks";
import { Button, CopyButton } from "../../kit/button.tsx";
import { CodeBlock } from "../../kit/code-block.tsx";
import { Empty } from "../../kit/error-box.tsx";
import { bytesText } from "../../kit/format.ts";
import { jsonPieces } from "../../kit/json-text.ts";
import { Card, Tabs } from "../../kit/page.tsx";
import { placeHash } from "../../kit/place.ts";
import { Marked } from "../../kit/plain-text.tsx";
import { usePlace } from "../../kit/router.ts";
import type { Payload, ShownEvent } from "../../kit/types.ts";
import { bytesOfBase64, hexText, payloadUrl } from "./payload-bytes.ts";

type View = "pretty" | "raw" | "hex";

const LABELS: Readonly<Record<View, string>> = { pretty: "Pretty", raw: "Raw", hex: "Hex" };

/** The payload as text. It is never parsed into values, so numbers keep every digit. */
export function PayloadCard({ event }: { readonly event: ShownEvent }) {
  const { payload } = event;
  if (payload === null) {
    return (
      <Card title="Payload">
        {event.isGone ? (
          <Empty title="Payload no longer available" icon="bin">
            The row of the event was deleted, and the payload with it.
          </Empty>
        ) : (
          <Empty title="No permission to see payloads" icon="park">
            Everything else about the event is shown. An administrator can grant the permission to your token or
            account.
          </Empty>
        )}
      </Card>
    );
  }
  const note = `${bytesText(payload.bytes)} · ${payload.encoding === "base64" ? "bytes" : "text"}`;
  return (
    <Card
      title="Payload"
      note={note}
      actions={
        <Button
          kind="quiet"
          icon="save"
          href={payloadUrl(event)}
          title="The whole payload as stored; the download is recorded in the audit"
        >
          Download
        </Button>
      }
    >
      {payload.isTruncated && (
        <p class="notice info" role="status">
          Only the first part is shown. Download the payload to get all {bytesText(payload.bytes)}.
        </p>
      )}
      {payload.bytes === 0 ? <Empty title="Empty payload" icon="dot" /> : <PayloadText payload={payload} />}
    </Card>
  );
}

function PayloadText({ payload }: { readonly payload: Payload }) {
  const { path, query } = usePlace();
  const views = useMemo(() => viewsOf(payload), [payload]);
  const view = views.find((it) => it === query.view) ?? views[0] ?? "raw";
  const hex = useMemo(() => (view === "hex" ? hexText(bytesOf(payload)) : ""), [view, payload]);
  const tabs = views.map((it) => ({
    label: it === "raw" && payload.encoding === "base64" ? "Base64" : LABELS[it],
    href: placeHash(path, { ...query, view: it === views[0] ? null : it }),
    isOpen: it === view,
  }));
  return (
    <>
      {views.length > 1 && <Tabs label="View of the payload" tabs={tabs} />}
      {view === "pretty" ? (
        <CodeBlock text={payload.text} label="Formatted payload" />
      ) : (
        <PlainBlock text={view === "hex" ? hex : payload.text} isHex={view === "hex"} />
      )}
    </>
  );
}

function PlainBlock({ text, isHex }: { readonly text: string; readonly isHex: boolean }) {
  return (
    <section class="code-block" aria-label="Raw payload">
      <CopyButton text={text} label="Copy payload" />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must reach that */}
      <pre tabIndex={0} class={isHex ? "hex" : ""}>
        {isHex ? text : <Marked text={text} keepsLines />}
      </pre>
    </section>
  );
}

function viewsOf({ encoding, text, isTruncated }: Payload): readonly View[] {
  if (encoding === "base64") return ["hex", "raw"];
  return !isTruncated && jsonPieces(text) !== null ? ["pretty", "raw", "hex"] : ["raw", "hex"];
}

function bytesOf({ encoding, text }: Payload): Uint8Array {
  return encoding === "base64" ? bytesOfBase64(text) : new TextEncoder().encode(text);
}
