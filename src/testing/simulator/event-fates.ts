import type { Message } from "../../core/event.ts";
import { type Outcome, rejected, retry } from "../../core/outcome.ts";
import type { Faults } from "./faults.ts";
import type { Fate } from "./scenario.ts";

/** Outcomes of events that always fail, independent of sender and time. */
export class EventFates {
  readonly #faults: Faults;
  readonly #fates = new Map<string, Fate>();
  readonly #failures = new Map<string, number>();
  readonly #slowKeys = new Map<string, number>();

  constructor(faults: Faults, slowKeys: Readonly<Record<string, number>>) {
    this.#faults = faults;
    for (const [key, delayMs] of Object.entries(slowKeys)) this.#slowKeys.set(key, delayMs);
  }

  set(content: string, fate: Fate): void {
    this.#fates.set(content, fate);
  }

  delayMs(message: Message): number {
    const delayMs = message.key === null ? undefined : this.#slowKeys.get(message.key);
    if (delayMs === undefined) return 0;
    this.#faults.count("slow key");
    return delayMs;
  }

  /** Whether sending this message crashes the process, before or after the message leaves. */
  crashes(message: Message): "before" | "after" | null {
    const fate = this.#fateOf(message);
    if (fate?.kind !== "crash") return null;
    this.#faults.count("crash poison");
    return fate.when;
  }

  /** Whether the destination never answers for this message. */
  isSilent(message: Message): boolean {
    if (this.#fateOf(message)?.kind !== "silent") return false;
    this.#faults.count("never answered");
    return true;
  }

  refusal(message: Message): Outcome | null {
    const { id } = message.event;
    const fate = this.#fateOf(message);
    if (fate?.kind === "poison") {
      this.#faults.count("poison");
      return retry(`event: ${id} is poison`);
    }
    if (fate?.kind === "rejected") {
      this.#faults.count("always rejected");
      return rejected(`event: ${id} is illegal`);
    }
    if (fate?.kind === "misjudged") {
      const { scope, afterMs } = fate;
      this.#faults.count(scope === "topic" ? "refused as topic" : "refused as destination");
      return retry(`event: ${id} is refused as if by the ${scope}`, {
        scope,
        ...(afterMs === null ? {} : { afterMs }),
      });
    }
    if (fate?.kind !== "flaky") return null;
    const failures = (this.#failures.get(contentOf(message)) ?? 0) + 1;
    if (failures > fate.failures) return null;
    this.#failures.set(contentOf(message), failures);
    this.#faults.count("flaky");
    return retry(`event: ${id} is flaky`);
  }

  #fateOf(message: Message): Fate | undefined {
    return this.#fates.get(contentOf(message));
  }
}

function contentOf(message: Message): string {
  return message.payload.toString("latin1");
}
