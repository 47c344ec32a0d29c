import type { ComponentChildren } from "preact";
import { apiPost } from "../../kit/api.ts";
import { askFor } from "../../kit/dialog.tsx";
import { plural } from "../../kit/format.ts";
import { PlainText } from "../../kit/plain-text.tsx";
import { toast } from "../../kit/toast.tsx";
import type { KeyBulk } from "../../kit/types.ts";
import { visibleText } from "../../kit/visible-text.ts";
import { type KeyVerb, keyLine } from "../cli-lines.ts";

const Name = ({ text }: { readonly text: string }) => (
  <code>
    <PlainText text={text} />
  </code>
);

interface KeyMeant {
  readonly pipeline: string;
  readonly key: string;
  /** Id of the event that blocks the key. */
  readonly headId: string;
}

interface Wording {
  readonly title: string;
  readonly confirm: string;
  readonly isDangerous?: boolean;
  readonly reason: "required" | "optional";
  text(key: KeyMeant): ComponentChildren;
  /** The text for several keys. */
  readonly textOfMany: string;
  done(count: number): string;
}

/** What each action does, shown in the dialog that confirms it. */
const WORDINGS: Readonly<Record<KeyVerb, Wording>> = {
  retry: {
    title: "Retry now",
    textOfMany:
      "The relay sends the blocking event of each key again now. If it arrives, the waiting events follow in order. If it fails, the key stays blocked.",
    confirm: "Retry it",
    reason: "optional",
    text: ({ headId, key }) => (
      <p>
        The relay sends <Name text={headId} /> again now. If it arrives, the waiting events of the key{" "}
        <Name text={key} /> follow in order. If it fails, the key stays blocked.
      </p>
    ),
    done: (count) => `Retrying ${plural(count, "event")} now.`,
  },
  skip: {
    title: "Skip the blocking event",
    textOfMany:
      "The dead event of each key stays a dead letter, and the waiting events are delivered without it. This gives up order: if you replay the skipped event later, it arrives after events that were written after it.",
    confirm: "Skip it",
    isDangerous: true,
    reason: "required",
    text: ({ headId, key }) => (
      <>
        <p>
          <Name text={headId} /> stays a dead letter, and the waiting events of the key <Name text={key} /> are
          delivered without it.
        </p>
        <p>
          <strong>This gives up order:</strong> if you replay it later, it arrives after events that were written after
          it.
        </p>
      </>
    ),
    done: (count) => `${plural(count, "event")} skipped; ${count === 1 ? "its key continues" : "their keys continue"}.`,
  },
  resume: {
    title: "Retry all failed events of the key",
    confirm: "Retry all",
    textOfMany:
      "The relay retries all failed events of these keys now, in the order in which they were written. If one fails again, its key stops there.",
    reason: "optional",
    text: ({ key }) => (
      <p>
        The relay retries all failed events of the key <Name text={key} /> now, in the order in which they were written;
        the waiting events follow. If one fails again, the key stops there.
      </p>
    ),
    done: (count) => `Retrying ${plural(count, "event")} of the key.`,
  },
  discard: {
    title: "Discard the blocking event",
    textOfMany:
      "The dead event of each key is discarded permanently: it is never sent and cannot be replayed. The waiting events are delivered without it.",
    confirm: "Discard it",
    isDangerous: true,
    reason: "required",
    text: ({ headId, key }) => (
      <>
        <p>
          <Name text={headId} /> is discarded <strong>permanently</strong>: it is never sent and cannot be replayed.
        </p>
        <p>
          The waiting events of the key <Name text={key} /> are delivered without it. To keep it for later, skip it
          instead.
        </p>
      </>
    ),
    done: (count) =>
      `${plural(count, "event")} discarded; ${count === 1 ? "its key continues" : "their keys continue"}.`,
  },
};

/** For one key or several. Keys that cannot be changed are listed in a message and do not affect the others. */
export function askForKey(verb: KeyVerb, keys: readonly KeyMeant[], onDone: () => void): void {
  const { title, confirm, isDangerous = false, reason: wants, text, textOfMany, done } = WORDINGS[verb];
  const [first, ...more] = keys;
  if (first === undefined) return;
  const isOne = more.length === 0;
  askFor({
    title: isOne ? title : `${title}: ${plural(keys.length, "key")}`,
    text: isOne ? text(first) : <p>{textOfMany}</p>,
    confirm: isOne ? confirm : `${confirm.split(" ")[0]} ${plural(keys.length, "key")}`,
    isDangerous,
    reason: wants,
    command: (reason) => keyLine(verb, keys, reason),
    run: async (reason) => {
      const named = keys.map(({ key, pipeline }) => ({ pipeline, key }));
      const body = { action: verb, keys: named, ...(reason === "" ? {} : { reason }) };
      const { changed, failed } = await apiPost<KeyBulk>("/keys/bulk", body);
      if (changed.length > 0) toast(done(changed.length));
      if (failed.length > 0) {
        const why = failed.map((it) => `${visibleText(it.key, 120)}: ${visibleText(it.reason, 500)}`);
        const details = [...why.slice(0, 3), ...(why.length > 3 ? [`and ${why.length - 3} more`] : [])].join("; ");
        toast(details, { title: `${plural(failed.length, "key")} not changed`, tone: "bad" });
      }
      onDone();
    },
  });
}
