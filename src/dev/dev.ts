import type { Environment } from "../config/reading/environment.ts";
import { systemClock } from "../core/clock.ts";
import { migrateUp } from "../postgres/migrations/migrate.ts";
import { openDatabase } from "../postgres/pool.ts";
import { EXIT } from "../service/exit.ts";
import { Signals } from "../service/signals.ts";
import { ArrivalBook } from "./arrival-book.ts";
import { DemoDestination } from "./demo-destination.ts";
import { buildShop, DEMO_ROLE } from "./demo-shop.ts";
import { startDevServer } from "./dev-server.ts";
import { requireEmbeddedPostgres } from "./embedded-postgres.ts";
import { type EmbeddedServer, randomPassword, startEmbeddedServer } from "./embedded-server.ts";
import { freePort } from "./free-port.ts";
import { Journal } from "./journal.ts";
import { type LiveParts, LiveState } from "./live-state.ts";
import { brokerOf, relayEnvironment, serversIn, withoutServers } from "./relay-settings.ts";
import { RelaySupervisor } from "./relay-supervisor.ts";
import { createScratchFolder, type ScratchFolder } from "./scratch-folder.ts";
import { ShopFigures } from "./shop-figures.ts";
import { Shoppers } from "./shoppers.ts";
import { Switchboard } from "./switchboard.ts";
import { StatusLines, Terminal } from "./terminal.ts";

interface DevOptions {
  readonly port: number;
  /** Orders per second. */
  readonly rate: number;
  readonly traffic: boolean;
  /** Whether the demo may use the servers that the environment configures. */
  readonly external: boolean;
}

const READY_LOOK_MS = 30;

/** `outbox-relay dev`: a complete demo on one machine, with a console to watch and to break it. Returns the exit code. */
export async function runDev(options: DevOptions): Promise<number> {
  const terminal = new Terminal();
  const signals = new Signals();
  const env = options.external ? process.env : withoutServers(process.env);
  const face = new DevFace(options, terminal, env, await brokerOf(env));
  try {
    const starting = face.start();
    starting.catch(() => {});
    await Promise.race([signals.toEnd, starting.then(() => signals.toEnd)]);
    terminal.end();
    terminal.say("stopping: finishing and settling the events in flight ...");
    await face.stop();
    terminal.say("stopped: all processes and data are removed");
    return EXIT.ok;
  } finally {
    terminal.end();
    await face.stop();
    signals.stop();
  }
}

/** All parts of the demo. They start one after another and stop in reverse order. */
class DevFace {
  readonly #options: DevOptions;
  readonly #terminal: Terminal;
  readonly #env: Environment;
  readonly #stopping = new AbortController();
  readonly #closers: (() => Promise<void> | void)[] = [];
  readonly #parts: LiveParts;
  readonly #live: LiveState;
  #server: EmbeddedServer | null = null;
  #relayPort: number | null = null;
  #starting: Promise<void> | null = null;

  constructor(options: DevOptions, terminal: Terminal, env: Environment, broker: string | null) {
    this.#options = options;
    this.#env = env;
    this.#terminal = terminal;
    const book = new ArrivalBook();
    this.#parts = {
      journal: new Journal(({ tone, text }) =>
        terminal.say(terminal.paint(tone === "bad" ? "yellow" : "dim", `  ${text}`)),
      ),
      book,
      destination: new DemoDestination(book),
      broker,
      tour: { isBroken: false, isFixed: false },
      shoppers: null,
      figures: null,
      relays: null,
      startingWith: "the console",
    };
    this.#live = new LiveState(this.#parts, () => this.#server?.isRunning === false);
  }

  /** Resolves when events are delivered, or when it was stopped before. */
  start(): Promise<void> {
    this.#starting ??= this.#start();
    return this.#starting;
  }

  /** Stops and removes everything that was started. Can be called again. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#starting?.catch(() => {});
    for (const close of this.#closers.splice(0).reverse()) await close();
  }

  async #start(): Promise<void> {
    requireEmbeddedPostgres();
    const folder = createScratchFolder();
    this.#closers.push(() => folder.remove());
    await this.#showPage();
    for (const [name, step] of [
      ["an embedded PostgreSQL", () => this.#startDatabase(folder)],
      ["the relay", () => this.#startRelay()],
    ] as const) {
      if (this.#stopping.signal.aborted) return;
      this.#parts.startingWith = name;
      await step();
    }
    if (this.#stopping.signal.aborted) return;
    this.#parts.startingWith = null;
    await this.#live.tick();
    this.#terminal.say(
      `ready in ${process.uptime().toFixed(1)} s. Press Ctrl-C to stop; all processes and data are removed.`,
    );
    const lines = new StatusLines(this.#terminal, this.#live);
    this.#closers.push(() => lines.stop());
  }

  async #showPage(): Promise<void> {
    const switchboard = new Switchboard(this.#parts, () => this.#server);
    const { port } = this.#options;
    const server = await startDevServer({ live: this.#live, switchboard, relayPort: () => this.#relayPort }, port);
    this.#closers.push(() => server.close());
    const { paint } = this.#terminal;
    this.#terminal.say(`outbox-relay dev: ${paint.call(this.#terminal, ["bold", "cyan"], server.address)}`);
    if (server.port !== port) this.#terminal.say(`port ${port} is in use: using ${server.port}`);
    this.#reportUnusedVariables();
    this.#live.start();
    this.#closers.push(async () => {
      await this.#live.stop();
      this.#parts.journal.stop();
    });
  }

  #reportUnusedVariables(): void {
    const names = serversIn(process.env).filter((name) => !(name in this.#env));
    if (names.length > 0) {
      const [are, them] = names.length === 1 ? ["is", "it"] : ["are", "them"];
      this.#terminal.say(
        `${names.join(", ")} ${are} set and not used: the demo sends nothing to other servers. Start with --external to use ${them}`,
      );
    }
    if (process.env.DATABASE_URL) {
      this.#terminal.say("DATABASE_URL is set and not used: the demo runs its own database");
    }
  }

  async #startDatabase(folder: ScratchFolder): Promise<void> {
    this.#server = await startEmbeddedServer(folder);
    const server = this.#server;
    const { url } = server;
    this.#closers.push(() => server.stop());
    const admin = openDatabase({ url });
    await migrateUp(admin).finally(() => admin.close());
    const rolePassword = randomPassword();
    await buildShop(url, rolePassword);
    const figures = new ShopFigures(url);
    this.#closers.push(() => figures.close());
    this.#parts.figures = figures;
    const { rate, traffic } = this.#options;
    const { book, broker } = this.#parts;
    const shoppers = new Shoppers({ url, rate, isShopping: traffic, book: broker === null ? book : null });
    this.#parts.shoppers = shoppers;
    this.#closers.push(() => shoppers.stop());
    shoppers.start();
    if (traffic && broker === null) await shoppers.refund();
    this.#terminal.say(`database: ${url} (try: select * from outbox_relay.relay_state)`);
    const relayUrl = url.replace(/\/\/postgres:\w+@/, `//${DEMO_ROLE}:${rolePassword}@`);
    const [first, second] = [await freePort(), await freePort()];
    this.#relayPort = first;
    this.#parts.relays = {
      first: this.#supervise("The relay", relayEnvironment(this.#env, relayUrl, first), folder.path),
      second: this.#supervise("The second relay", relayEnvironment(this.#env, relayUrl, second), folder.path),
    };
  }

  #supervise(name: string, env: Readonly<Record<string, string>>, cwd: string): RelaySupervisor {
    const { broker, destination, journal } = this.#parts;
    return new RelaySupervisor({
      name,
      env,
      cwd,
      destination: broker === null ? destination : null,
      onLogLine: (line) => journal.addLogLine(name, line),
      onOutput: (text) => this.#terminal.say(text),
      onEnd: (how) => journal.relayEnded(name, how),
    });
  }

  async #startRelay(): Promise<void> {
    const { broker, relays } = this.#parts;
    if (relays === null) return;
    this.#terminal.say(
      `destination: ${broker ?? "built in, shown in the console. To use a broker, set OUTBOX_DESTINATION and start with --external"}`,
    );
    const { first: relay, second } = relays;
    relay.start();
    this.#closers.push(async () => void (await Promise.all([relay.stop(), second.stop()])));
    const { signal } = this.#stopping;
    // The user's own broker may be down: the demo shows that and does not wait for it.
    const isUp = () => relay.state.state === "running" || broker !== null;
    const path = broker === null ? "/health" : "/livez";
    while (!signal.aborted && !(isUp() && (await this.#answers(path)))) await systemClock.sleep(READY_LOOK_MS, signal);
  }

  async #answers(path: string): Promise<boolean> {
    const answer = await fetch(`http://127.0.0.1:${this.#relayPort}${path}`).catch(() => null);
    await answer?.body?.cancel();
    return answer?.ok ?? false;
  }
}
