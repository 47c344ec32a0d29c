import { Counter, Gauge, Registry } from "prom-client";
import type { RequestGroup } from "../../ports/request-queue.ts";
import type { RequestListener, RequestState } from "../../requests/request-listener.ts";
import { contextName } from "../../requests/request-names.ts";
import type { MetricFamily } from "../push/write-request.ts";
import { type MetricsText, prometheusText, wantsOpenMetrics } from "./metrics-text.ts";
import { ProcessGauges } from "./process-gauges.ts";

const STATES: readonly RequestState[] = ["starting", "standby", "running", "broken", "halted", "stopped"];

interface Delay {
  readonly namespace: string;
  readonly lagMs: number;
  /** Wall time since when events cannot be read; null while they can. */
  readonly blockedSinceMs: number | null;
}

/** Metrics of a request relay, by namespace. No label holds a tenant or an id. */
export class RequestMetrics implements RequestListener {
  readonly #registry = new Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE>();
  readonly #events: Counter<"namespace">;
  readonly #dispatched: Counter<"namespace">;
  readonly #skipped: Counter<"namespace">;
  readonly #dead: Counter<"namespace">;
  readonly #reasons: Counter<"namespace" | "reason">;
  readonly #lag: Gauge<"namespace">;
  readonly #states: Gauge<"context" | "state">;
  readonly #process: ProcessGauges;
  readonly #delays = new Map<string, Delay>();

  constructor(version: string, groups: readonly RequestGroup[]) {
    this.#registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
    const registers = [this.#registry as never];
    const counter = (name: string, help: string) => new Counter({ name, help, labelNames: ["namespace"], registers });
    this.#events = counter("outbox_events", "Events read: dispatched, skipped and dead");
    this.#dispatched = counter("outbox_dispatched", "Jobs added, one per event that requests one");
    this.#skipped = counter("outbox_skipped", "Events without a new job: they request none, or already have one");
    this.#dead = counter("outbox_relay_requests_dead", "Events that request a job that cannot be created");
    const lagHelp = "Age of the last event read, in ms; 0 when all events are read";
    this.#lag = new Gauge({ name: "outbox_lag_ms", help: lagHelp, labelNames: ["namespace"], registers });
    this.#reasons = new Counter({
      name: "outbox_relay_requests_skipped",
      help: "Skipped events by reason",
      labelNames: ["namespace", "reason"],
      registers,
    });
    this.#states = new Gauge({
      name: "outbox_relay_requests_state",
      help: "1 for the context's current state",
      labelNames: ["context", "state"],
      registers,
    });
    const build = new Gauge({
      name: "outbox_relay_build_info",
      help: "1, labelled by the version of the relay and of Node",
      labelNames: ["version", "node"],
      registers,
    });
    build.set({ version, node: process.version }, 1);
    this.#process = new ProcessGauges(this.#registry as never);
    // Counters start at 0 instead of being absent: alerts watch for increases.
    for (const { namespace } of groups) {
      for (const one of [this.#events, this.#dispatched, this.#skipped, this.#dead]) one.inc({ namespace }, 0);
      this.#lag.set({ namespace }, 0);
    }
  }

  dispatched({ namespace }: RequestGroup): void {
    this.#events.inc({ namespace });
    this.#dispatched.inc({ namespace });
  }

  skipped({ namespace }: RequestGroup, _event: unknown, reason: string): void {
    this.#events.inc({ namespace });
    this.#skipped.inc({ namespace });
    this.#reasons.inc({ namespace, reason });
  }

  died({ namespace }: RequestGroup): void {
    this.#events.inc({ namespace });
    this.#dead.inc({ namespace });
  }

  lag(group: RequestGroup, lagMs: number): void {
    this.#delays.set(contextName(group), { namespace: group.namespace, lagMs, blockedSinceMs: null });
  }

  turned(group: RequestGroup, state: RequestState): void {
    const context = contextName(group);
    const isBlocked = state === "broken" || state === "halted";
    const { lagMs = 0, blockedSinceMs = null } = this.#delays.get(context) ?? {};
    if (isBlocked && blockedSinceMs === null) {
      this.#delays.set(context, { namespace: group.namespace, lagMs, blockedSinceMs: Date.now() });
    }
    for (const one of STATES) this.#states.set({ context, state: one }, one === state ? 1 : 0);
  }

  async text(accept = ""): Promise<MetricsText> {
    this.#refresh();
    const text = await this.#registry.metrics();
    return wantsOpenMetrics(accept)
      ? { contentType: Registry.OPENMETRICS_CONTENT_TYPE, text }
      : { contentType: Registry.PROMETHEUS_CONTENT_TYPE, text: prometheusText(text) };
  }

  /** For a push, which has its own format. */
  async families(): Promise<readonly MetricFamily[]> {
    this.#refresh();
    return (await this.#registry.getMetricsAsJSON()) as unknown as MetricFamily[];
  }

  stop(): void {
    this.#process.stop();
  }

  /**
   * Contexts can share a namespace: the one that is furthest behind counts. The lag grows while events cannot be read.
   */
  #refresh(): void {
    this.#process.refresh();
    for (const [namespace, delays] of Map.groupBy(this.#delays.values(), (delay) => delay.namespace)) {
      const ages = delays.map(({ lagMs, blockedSinceMs }) =>
        Math.max(lagMs, Date.now() - (blockedSinceMs ?? Date.now())),
      );
      this.#lag.set({ namespace }, Math.max(...ages));
    }
  }
}
