import { monitorEventLoopDelay } from "node:perf_hooks";
import { Counter, Gauge, type Registry } from "prom-client";

/** Coarse, so that it costs nothing: a blocked event loop is blocked for longer. */
const LOOP_RESOLUTION_MS = 50;
const NS = 1e9;

/** Process metrics under the usual names of Prometheus clients. */
export class ProcessGauges {
  readonly #loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  readonly #memory: Gauge;
  readonly #heap: Gauge;
  readonly #lag: Gauge;
  readonly #cpu: Counter;

  constructor(registry: Registry<never>) {
    const registers = [registry as Registry];
    const gauge = (name: string, help: string) => new Gauge({ name, help, registers });
    this.#memory = gauge("process_resident_memory_bytes", "Resident memory of the process");
    this.#heap = gauge("nodejs_heap_size_used_bytes", "Heap memory used by JavaScript objects");
    this.#lag = gauge(
      "nodejs_eventloop_lag_p99_seconds",
      "99th percentile of the event loop lag since the last scrape",
    );
    const started = gauge("process_start_time_seconds", "Start time of the process, in seconds since 1970");
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
    // The measured delay includes the timer's own period.
    const lateNs = this.#loop.count === 0 ? 0 : this.#loop.percentile(99) - LOOP_RESOLUTION_MS * 1e6;
    this.#lag.set(Math.max(0, lateNs) / NS);
    this.#loop.reset();
  }

  stop(): void {
    this.#loop.disable();
  }
}
