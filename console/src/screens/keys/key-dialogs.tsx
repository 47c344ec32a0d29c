import type { ComponentChildren } from "preact";
import { apiPost } from "../../kit/api.ts";
import { askFor } from "../../kit/dialog.tsx";
import { plural } from "../../kit/format.ts";
import { toast } from "../../kit/toast.tsx";
import type { KeyChange } from "../../kit/types.ts";
import { type KeyVerb, keyLine } from "../cli-lines.ts";

interface KeyMeant {
  readonly pipeline: string;
  readonly key: string;
  readonly source: string;
  /** Of the event that everything waits for. */
  readonly headId: string;
}

interface Wording {
  readonly title: string;
  readonly confirm: string;
  readonly isDangerous?: boolean;
  readonly reason: "required" | "optional";
  text(key: KeyMeant): ComponentChildren;
  done(count: number): string;
}

/** What each does, said before it is done. */
const WORDINGS: Readonly<Record<KeyVerb, Wording>> = {
  retry: {
    title: "Retry the head now",
    confirm: "Retry it",
    reason: "optional",
    text: ({ headId, key }) => (
      <p>
        <code>{headId}</code> is sent once more, now. When it arrives, what waits behind it in the key{" "}
        <code>{key}</code> follows in order. When it fails, all stays as it is.
      </p>
    ),
    done: () => "It is tried again now.",
  },
  skip: {
    title: "Skip the head",
    confirm: "Skip it",
    isDangerous: true,
    reason: "required",
    text: ({ headId, key }) => (
      <>
        <p>
          <code>{headId}</code> stays among the dead letters, and what waits behind it in the key <code>{key}</code>{" "}
          goes out without it.
        </p>
        <p>
          <strong>Order is given up for this one:</strong> if it is replayed later, it arrives after events that were
          written after it.
        </p>
      </>
    ),
    done: () => "It is skipped; its key goes on without it.",
  },
  resume: {
    title: "Resume the key",
    confirm: "Resume it",
    reason: "optional",
    text: ({ key }) => (
      <p>
        Everything of the key <code>{key}</code> that failed is tried again now, in the order of writing; what waits
        behind it follows. When one fails again, the key stops there.
      </p>
    ),
    done: (count) => `${plural(count, "event")} of the key ${count === 1 ? "is" : "are"} tried again.`,
  },
  discard: {
    title: "Discard the head",
    confirm: "Discard it",
    isDangerous: true,
    reason: "required",
    text: ({ headId, key }) => (
      <>
        <p>
          <code>{headId}</code> is given up <strong>for good</strong>: it is never sent, and cannot be replayed.
        </p>
        <p>
          What waits behind it in the key <code>{key}</code> goes on without it. To keep it for later, skip it instead.
        </p>
      </>
    ),
    done: () => "It is discarded; its key goes on without it.",
  },
};

export function askForKey(verb: KeyVerb, it: KeyMeant, onDone: () => void): void {
  const { title, confirm, isDangerous = false, reason: wants, text, done } = WORDINGS[verb];
  askFor({
    title,
    text: text(it),
    confirm,
    isDangerous,
    reason: wants,
    command: (reason) => keyLine(verb, it, reason),
    run: async (reason) => {
      const body = { pipeline: it.pipeline, key: it.key, ...(reason === "" ? {} : { reason }) };
      const { changed } = await apiPost<KeyChange>(`/keys/${verb}`, body);
      if (changed.length > 0) toast(done(changed.length));
      else toast("Nothing of this key is held any more.", { title: "There was nothing to do" });
      onDone();
    },
  });
}
