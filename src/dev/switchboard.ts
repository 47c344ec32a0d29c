import { z } from "zod";
import type { DestinationFaults } from "./demo-destination.ts";
import type { EmbeddedServer } from "./embedded-server.ts";
import type { LiveParts } from "./live-state.ts";
import { BURST_EVENTS } from "./shoppers.ts";

const FREEZE_MS = 5_000;

const SWITCHES = ["down", "slow", "flaky", "mended", "traffic", "second"] as const;
const ACTS = ["poison", "kill", "burst", "freeze"] as const;

/** What may be asked for: a switch with its new place, or something that happens once. */
export const faultSchema = z.discriminatedUnion("fault", [
  z.strictObject({ fault: z.enum(SWITCHES), on: z.boolean() }),
  z.strictObject({ fault: z.enum(ACTS) }),
]);

type FaultRequest = z.output<typeof faultSchema>;

/** Why a fault cannot be had just now; the page shows it. */
export class Unavailable extends Error {}

const TOLD: Readonly<Record<keyof DestinationFaults, readonly [on: string, off: string]>> = {
  down: ["The destination was switched off.", "The destination was switched on again."],
  slow: ["The destination answers half a second late now.", "The destination answers at once again."],
  flaky: ["The destination fails every tenth message now.", "The destination fails nothing by chance any more."],
  mended: [
    "The destination was mended: it takes poison too. Replay what is dead.",
    "The destination refuses poison again.",
  ],
};

/** Does what the switches and buttons of the page ask for, and notes it. */
export class Switchboard {
  readonly #parts: LiveParts;
  readonly #server: () => EmbeddedServer | null;

  constructor(parts: LiveParts, server: () => EmbeddedServer | null) {
    this.#parts = parts;
    this.#server = server;
  }

  /** Throws Unavailable. */
  async apply(request: FaultRequest): Promise<void> {
    if (request.fault === "traffic") this.#traffic(request.on);
    else if (request.fault === "second") await this.#secondRelay(request.on);
    else if ("on" in request) this.#destination(request.fault, request.on);
    else await this.#acts[request.fault]();
  }

  /** Throws Unavailable. */
  async replay(letterId: string): Promise<void> {
    const isThere = (await this.#parts.figures?.replay(letterId)) ?? false;
    if (!isThere) throw new Unavailable("This dead letter is not there any more.");
    this.#parts.journal.add("plain", "A dead letter was put back; the relay tries it again.");
  }

  readonly #acts: Readonly<Record<(typeof ACTS)[number], () => Promise<void> | void>> = {
    poison: async () => {
      this.#requireOwnDestination();
      this.#parts.journal.add("plain", "A poison event was written, and two more of its key behind it.");
      await this.#shoppers().poison();
    },
    burst: async () => {
      this.#parts.journal.add("plain", `A burst of ${BURST_EVENTS.toLocaleString("en")} events is being written.`);
      await this.#shoppers().burst();
    },
    kill: () => {
      if (!this.#parts.relays?.first.kill()) throw new Unavailable("The relay is not running at this moment.");
      this.#parts.journal.add("bad", "The relay was killed with SIGKILL, in the middle of whatever it did.");
    },
    freeze: () => {
      if (!this.#server()?.freeze(FREEZE_MS))
        throw new Unavailable("The database is frozen already, not up yet, or not on Linux.");
      this.#parts.journal.add("bad", "The database was frozen for 5 s: it is there and answers nobody.");
    },
  };

  #destination(fault: keyof DestinationFaults, on: boolean): void {
    this.#requireOwnDestination();
    const { destination, journal } = this.#parts;
    if (destination.faults[fault] === on) return;
    destination.faults[fault] = on;
    const isTrouble = on && fault !== "mended";
    journal.add(isTrouble ? "bad" : "plain", TOLD[fault][on ? 0 : 1]);
  }

  #traffic(on: boolean): void {
    const shoppers = this.#shoppers();
    if (shoppers.isShopping === on) return;
    shoppers.isShopping = on;
    this.#parts.journal.add("plain", on ? "The shop is open: orders come in." : "The shop is closed: no new orders.");
  }

  async #secondRelay(on: boolean): Promise<void> {
    const { journal, relays } = this.#parts;
    if (relays === null) throw new Unavailable("The demo is still starting.");
    if (on !== (relays.second.state.state === "stopped")) return;
    journal.add(
      "plain",
      on ? "A second relay starts; the lanes are shared out." : "The second relay stops in good order.",
    );
    if (on) relays.second.start();
    else await relays.second.stop();
  }

  #shoppers() {
    if (this.#parts.shoppers === null) throw new Unavailable("The demo is still starting.");
    return this.#parts.shoppers;
  }

  #requireOwnDestination(): void {
    if (this.#parts.broker === null) return;
    throw new Unavailable(
      `Events go to ${this.#parts.broker}, and that is yours: only the built-in destination has faults.`,
    );
  }
}
