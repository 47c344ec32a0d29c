import { monitorEventLoopDelay } from "node:perf_hooks";
import { Counter, Gauge, type Registry } from "prom-client";

/** Coarse enough to cost nothing: a blocked loop is blocked for longer. */
const LOOP_RESOLUTION_MS = 50;
const NS = 1e9;

/** What every process has, under the names that everybody knows. */
export class ProcessGauges {
  readonly #loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  readonly #memory: Gauge;
  readonly #heap: Gauge;
  readonly #lag: Gauge;
  readonly #cpu: Counter;

  constructor(registry: Registry<never>) {
    const registers = [registry as Registry];
    const gauge = (name: string, help: string) => new Gauge({ name, help, registers });
    this.#memory = gauge("process_resident_memory_bytes", "Memory of the process, as the system counts it");
    this.#heap = gauge("nodejs_heap_size_used_bytes", "Memory of it that JavaScript objects take");
    this.#lag = gauge(
      "nodejs_eventloop_lag_p99_seconds",
      "How late 99 % of the timers were since the last look, at most",
    );
    const started = gauge("process_start_time_seconds", "When the process started, in seconds since 1970");
    started.set(Date.now() / 1_000 - process.uptime());
    this.#cpu = new Counter({ name: "process_cpu_seconds", help: "CPU time of the process", registers });
    this.#loop.enable();
  }

  refresh(): void {
    const { rss, heapUsed } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    this.#memory.set(rss);
    this.#heap.set(heapUsed);
    this.#cpu.reset();
    this.#cpu.inc((user + system) / 1e6);
    // The timer's own period is part of what it measures.
    const lateNs = this.#loop.count === 0 ? 0 : this.#loop.percentile(99) - LOOP_RESOLUTION_MS * 1e6;
    this.#lag.set(Math.max(0, lateNs) / NS);
    this.#loop.reset();
  }

  stop(): void {
    this.#loop.disable();
  }
}
