import { z } from "zod";
import type { DestinationFaults } from "./demo-destination.ts";
import type { EmbeddedServer } from "./embedded-server.ts";
import type { LiveParts } from "./live-state.ts";
import { BURST_EVENTS } from "./shoppers.ts";

const FREEZE_MS = 5_000;

const SWITCHES = ["down", "slow", "flaky", "traffic", "second", "database"] as const;
const ACTS = ["poison", "kill", "burst", "freeze", "fix"] as const;
/** Requests that the guided tour counts as a fault. */
const BREAKS: readonly string[] = ["down", "slow", "flaky", "database", "poison", "kill", "freeze"];

/** A request of the console: a switch with its new state, or a one-time action. */
export const faultSchema = z.discriminatedUnion("fault", [
  z.strictObject({ fault: z.enum(SWITCHES), on: z.boolean() }),
  z.strictObject({ fault: z.enum(ACTS) }),
]);

type FaultRequest = z.output<typeof faultSchema>;

/** The request is not possible right now; the console shows the reason. */
export class Unavailable extends Error {}

type DestinationSwitch = Exclude<keyof DestinationFaults, "fixed">;

const SWITCH_MESSAGES: Readonly<Record<DestinationSwitch, readonly [on: string, off: string]>> = {
  down: ["The destination was switched off.", "The destination was switched on again."],
  slow: ["The destination takes half a second longer now.", "The destination answers at normal speed again."],
  flaky: ["The destination fails every tenth message now.", "The destination no longer fails messages at random."],
};

/** Applies the switches and buttons of the console and records them in the journal. */
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
      // A fixed destination would accept it.
      destination.faults.fixed = false;
      tour.isFixed = false;
      journal.add("plain", "A poison event was written, followed by two more events of its key.");
      await this.#shoppers().poison();
    },
    fix: async () => {
      this.#requireOwnDestination();
      for (const fault of ["down", "slow", "flaky"] as const) this.#destination(fault, false);
      if (this.#server()?.isRunning === false) await this.#database(false);
      const { destination, journal, tour } = this.#parts;
      tour.isFixed = tour.isBroken;
      if (destination.faults.fixed) return;
      destination.faults.fixed = true;
      journal.add("good", "The destination was fixed: it accepts poison events too. Replay the dead letters.");
    },
    burst: async () => {
      this.#parts.journal.add("plain", `A burst of ${BURST_EVENTS.toLocaleString("en")} events is being written.`);
      await this.#shoppers().burst();
    },
    kill: () => {
      if (!this.#parts.relays?.first.kill()) throw new Unavailable("The relay is not running.");
      this.#parts.journal.add("bad", "The relay was killed with SIGKILL.");
    },
    freeze: () => {
      if (!this.#server()?.freeze(FREEZE_MS))
        throw new Unavailable("The database is already frozen or not running yet, or this machine does not run Linux.");
      this.#parts.journal.add("bad", "The database was frozen for 5 s: it accepts connections but does not answer.");
    },
  };

  #destination(fault: DestinationSwitch, on: boolean): void {
    this.#requireOwnDestination();
    const { destination, journal } = this.#parts;
    if (destination.faults[fault] === on) return;
    destination.faults[fault] = on;
    journal.add(on ? "bad" : "plain", SWITCH_MESSAGES[fault][on ? 0 : 1]);
  }

  /** `on` means stopped. */
  async #database(on: boolean): Promise<void> {
    const server = this.#server();
    if (server === null || this.#parts.startingWith !== null) throw new Unavailable("The demo is still starting.");
    if (server.isRunning !== on) return;
    const { journal } = this.#parts;
    if (on) {
      await server.halt();
      journal.add("bad", "The database was stopped: no writes, no settling.");
    } else {
      await server.resume();
      journal.add("good", "The database is running again with all its data.");
    }
  }

  #traffic(on: boolean): void {
    const shoppers = this.#shoppers();
    if (shoppers.isShopping === on) return;
    shoppers.isShopping = on;
    this.#parts.journal.add("plain", on ? "The shop writes orders again." : "The shop writes no more orders.");
  }

  async #secondRelay(on: boolean): Promise<void> {
    const { journal, relays } = this.#parts;
    if (relays === null) throw new Unavailable("The demo is still starting.");
    if (on !== (relays.second.state.state === "stopped")) return;
    journal.add(
      "plain",
      on ? "A second relay starts; the relays share the lanes." : "The second relay stops gracefully.",
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
      `Events go to your own broker (${this.#parts.broker}): only the built-in destination has faults.`,
    );
  }
}
