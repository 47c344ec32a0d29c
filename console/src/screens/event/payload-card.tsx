import { useMemo } from "preact/hooks";
import { Button, CopyButton } from "../../kit/button.tsx";
import { CodeBlock } from "../../kit/code-block.tsx";
import { Empty } from "../../kit/error-box.tsx";
import { bytesText } from "../../kit/format.ts";
import { jsonPieces } from "../../kit/json-text.ts";
import { Card, Tabs } from "../../kit/page.tsx";
import { placeHash } from "../../kit/place.ts";
import { usePlace } from "../../kit/router.ts";
import type { Payload, ShownEvent } from "../../kit/types.ts";
import { bytesOfBase64, hexText } from "./hex-text.ts";
import { payloadUrl } from "./payload-bytes.ts";

type View = "pretty" | "raw" | "hex";

const LABELS: Readonly<Record<View, string>> = { pretty: "Pretty", raw: "Raw", hex: "Hex" };

/** As text, whatever it holds. Numbers keep every digit, since nobody parses them. */
export function PayloadCard({ event }: { readonly event: ShownEvent }) {
  const { payload } = event;
  if (payload === null) {
    return (
      <Card title="Payload">
        {event.isGone ? (
          <Empty title="Nobody has it any more" icon="bin">
            Its row is gone, and with it the payload.
          </Empty>
        ) : (
          <Empty title="You may not see payloads" icon="park">
            All else of the event is here. Who gives out tokens or accounts may add that right to yours.
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
          title="The whole payload as it is stored; the audit notes it"
        >
          Download
        </Button>
      }
    >
      {payload.isTruncated && (
        <p class="notice info" role="status">
          Only the first part is shown. The download has all {bytesText(payload.bytes)}.
        </p>
      )}
      {payload.bytes === 0 ? <Empty title="It is empty" icon="dot" /> : <PayloadText payload={payload} />}
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
      {views.length > 1 && <Tabs label="How the payload is shown" tabs={tabs} />}
      {view === "pretty" ? (
        <CodeBlock text={payload.text} label="Payload in lines" />
      ) : (
        <PlainBlock text={view === "hex" ? hex : payload.text} isHex={view === "hex"} />
      )}
    </>
  );
}

function PlainBlock({ text, isHex }: { readonly text: string; readonly isHex: boolean }) {
  return (
    <section class="code-block" aria-label="Payload as it is">
      <CopyButton text={text} label="Copy payload" />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must reach that */}
      <pre tabIndex={0} class={isHex ? "hex" : ""}>
        {text}
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
