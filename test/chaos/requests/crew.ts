import type { SeededRandom } from "../../../src/testing/simulator/seeded-random.ts";
import type { ServiceProcess } from "../../e2e/service-process.ts";
import { until } from "../../servers/until.ts";

const STOP_MS_MAX = 120_000;

type LogLine = Readonly<Record<string, unknown>>;

/** Alike processes of which some are always there; whoever is killed is replaced. */
export class Crew implements AsyncDisposable {
  readonly #begin: () => Promise<ServiceProcess>;
  readonly #kind: string;
  readonly #all: ServiceProcess[] = [];
  readonly #running = new Map<ServiceProcess, string>();
  readonly #paused = new Set<ServiceProcess>();
  #next = 1;

  constructor(kind: string, begin: () => Promise<ServiceProcess>) {
    this.#kind = kind;
    this.#begin = begin;
  }

  async add(): Promise<void> {
    const name = `${this.#kind}-${this.#next++}`;
    const member = await this.#begin();
    this.#all.push(member);
    this.#running.set(member, name);
  }

  /** Null when none is awake. */
  pick(random: SeededRandom): ServiceProcess | null {
    const awake = [...this.#running.keys()].filter((member) => !this.#paused.has(member));
    return awake.length === 0 ? null : random.pick(awake);
  }

  nameOf(member: ServiceProcess): string {
    return this.#running.get(member) ?? this.#kind;
  }

  async kill(member: ServiceProcess): Promise<void> {
    this.#running.delete(member);
    this.#paused.delete(member);
    member.kill("SIGKILL");
    await member.ended;
  }

  pause(member: ServiceProcess): void {
    this.#paused.add(member);
    member.kill("SIGSTOP");
  }

  resume(member: ServiceProcess): void {
    if (!this.#paused.delete(member)) return;
    member.kill("SIGCONT");
  }

  async stop(member: ServiceProcess): Promise<void> {
    const name = this.nameOf(member);
    this.#running.delete(member);
    member.kill("SIGTERM");
    const ended = await until(`${name} ends`, () => Promise.race([member.ended, undefined]), STOP_MS_MAX);
    // Null: it had not got so far yet that it listens to signals.
    if (ended.code !== 0 && ended.code !== null)
      throw new Error(`${name} ended with ${ended.code}:\n${ended.stderr.slice(-2_000)}`);
  }

  async stopAll(): Promise<void> {
    await Promise.all([...this.#running.keys()].map((member) => this.stop(member)));
  }

  /** Of all that ever ran. */
  logs(fits: (line: LogLine) => boolean): LogLine[] {
    return this.#all.flatMap((member) => member.logs(fits));
  }

  /** Those that ended without having been told to. */
  async deserters(): Promise<string[]> {
    const found: string[] = [];
    for (const [member, name] of this.#running) {
      const ended = await Promise.race([member.ended, Promise.resolve(null)]);
      if (ended !== null) found.push(`${name} ended by itself with ${ended.code}:\n${ended.stderr.slice(-2_000)}`);
    }
    return found;
  }

  says(text: string): boolean {
    return this.#all.some((member) => member.stdout().includes(text) || member.stderr().includes(text));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#all.map((member) => member[Symbol.asyncDispose]()));
  }
}
