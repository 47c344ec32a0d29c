import { Gauge, type OpenMetricsContentType, type Registry } from "prom-client";
import { GRADES, gradeOf, type HealthCause } from "../../core/health-cause.ts";

/** Health as metrics, for alerts and dashboards. */
export class HealthGauges {
  readonly #grade: Gauge<"grade">;
  readonly #causes: Gauge<"code" | "grade" | "source" | "destination">;

  constructor(registry: Registry<OpenMetricsContentType>) {
    const registers = [registry];
    this.#grade = new Gauge({
      name: "outbox_relay_health_grade",
      help: "1 for the current health grade of this instance",
      labelNames: ["grade"],
      registers,
    });
    this.#causes = new Gauge({
      name: "outbox_relay_health_cause",
      help: "1 for each current health cause of this instance; absent otherwise",
      labelNames: ["code", "grade", "source", "destination"],
      registers,
    });
  }

  show(causes: readonly HealthCause[]): void {
    const present = gradeOf(causes);
    for (const grade of GRADES) this.#grade.set({ grade }, grade === present ? 1 : 0);
    this.#causes.reset();
    for (const { code, destination, grade, source } of causes) {
      this.#causes.set({ code, grade, source: source ?? "", destination: destination ?? "" }, 1);
    }
  }
}
