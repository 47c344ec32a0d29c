import { z } from "zod";
import type { DestinationFaults } from "./demo-destination.ts";
import type { EmbeddedServer } from "./embedded-server.ts";
import type { LiveParts } from "./live-state.ts";
import { BURST_EVENTS } from "./shoppers.ts";

const FREEZE_MS = 5_000;

const SWITCHES = ["down", "slow", "flaky", "traffic", "second", "database"] as const;
const ACTS = ["poison", "kill", "burst", "freeze", "mend"] as const;
/** What the guided tour counts as breaking something. */
const BREAKS: readonly string[] = ["down", "slow", "flaky", "database", "poison", "kill", "freeze"];

/** What may be asked for: a switch with its new place, or something that happens once. */
export const faultSchema = z.discriminatedUnion("fault", [
  z.strictObject({ fault: z.enum(SWITCHES), on: z.boolean() }),
  z.strictObject({ fault: z.enum(ACTS) }),
]);

type FaultRequest = z.output<typeof faultSchema>;

/** Why a fault cannot be had just now; the console shows it. */
export class Unavailable extends Error {}

type DestinationSwitch = Exclude<keyof DestinationFaults, "mended">;

const TOLD: Readonly<Record<DestinationSwitch, readonly [on: string, off: string]>> = {
  down: ["The destination was switched off.", "The destination was switched on again."],
  slow: ["The destination answers half a second late now.", "The destination answers at once again."],
  flaky: ["The destination fails every tenth message now.", "The destination fails nothing by chance any more."],
};

/** Does what the switches and buttons of the console ask for, and notes it. */
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
    else if (request.fault === "database") await this.#database(request.on);
    else if ("on" in request) this.#destination(request.fault, request.on);
    else await this.#acts[request.fault]();
    const isBreak = BREAKS.includes(request.fault) && !("on" in request && !request.on);
    if (isBreak) this.#parts.tour.isBroken = true;
  }

  readonly #acts: Readonly<Record<(typeof ACTS)[number], () => Promise<void> | void>> = {
    poison: async () => {
      this.#requireOwnDestination();
      const { destination, journal, tour } = this.#parts;
      // A destination that was mended would take it.
      destination.faults.mended = false;
      tour.isMended = false;
      journal.add("plain", "A poison event was written, and two more of its key behind it.");
      await this.#shoppers().poison();
    },
    mend: async () => {
      this.#requireOwnDestination();
      for (const fault of ["down", "slow", "flaky"] as const) this.#destination(fault, false);
      if (this.#server()?.isRunning === false) await this.#database(false);
      const { destination, journal, tour } = this.#parts;
      tour.isMended = tour.isBroken;
      if (destination.faults.mended) return;
      destination.faults.mended = true;
      journal.add("good", "The destination was mended: it takes poison too. Replay what is dead.");
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

  #destination(fault: DestinationSwitch, on: boolean): void {
    this.#requireOwnDestination();
    const { destination, journal } = this.#parts;
    if (destination.faults[fault] === on) return;
    destination.faults[fault] = on;
    journal.add(on ? "bad" : "plain", TOLD[fault][on ? 0 : 1]);
  }

  /** On: away. */
  async #database(on: boolean): Promise<void> {
    const server = this.#server();
    if (server === null || this.#parts.startingWith !== null) throw new Unavailable("The demo is still starting.");
    if (server.isRunning !== on) return;
    const { journal } = this.#parts;
    if (on) {
      await server.halt();
      journal.add("bad", "The database was stopped: nobody can write, and nobody can settle.");
    } else {
      await server.resume();
      journal.add("good", "The database is back, with all that it held.");
    }
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
