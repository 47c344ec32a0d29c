import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { parse, stringify } from "yaml";
import { AnswerBook } from "../src/core/answer-times.ts";
import { LATENCY_BOUNDS_MS } from "../src/core/latency.ts";
import { Condition } from "../src/telemetry/condition.ts";
import { Metrics } from "../src/telemetry/metrics/metrics.ts";
import { RequestMetrics } from "../src/telemetry/metrics/request-metrics.ts";
import { PushTally } from "../src/telemetry/push-tally.ts";
import { prometheusProgram } from "./servers/promtool.ts";
import { anchorsOf } from "./tidy/documents.ts";

const run = promisify(execFile);
const folder = fileURLToPath(new URL("../deploy/monitoring/", import.meta.url));
const fileText = (name: string) => readFileSync(join(folder, name), "utf8");

interface Rule {
  /** Absent: a recording rule. */
  readonly alert?: string;
  readonly expr: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

type Alert = Required<Rule>;

interface Rules {
  readonly groups: readonly { readonly rules: readonly Rule[] }[];
}

/** Each has its cases beside it. */
const FILES = ["alerts", "slo"] as const;
const rulesOf = (file: string) => parse(fileText(`${file}.yaml`)) as Rules;
const isAlert = (rule: Rule): rule is Alert => rule.alert !== undefined;
const rules = FILES.flatMap((file) => rulesOf(file).groups.flatMap((group) => group.rules));
const alerts = rules.filter(isAlert);

let promtool: string;
let scratch: string;
before(async () => {
  promtool = await prometheusProgram("promtool");
  scratch = mkdtempSync(join(tmpdir(), "monitoring-"));
});
after(() => rmSync(scratch, { recursive: true }));

test("A12 promtool takes the alert rules, and every case of theirs comes out as written", async () => {
  for (const file of FILES) {
    await run(promtool, ["check", "rules", `${file}.yaml`], { cwd: folder });
    await run(promtool, ["test", "rules", `${file}.test.yaml`], { cwd: folder });
  }
  assert.ok(alerts.length >= 12);
});

for (const [what, expr] of [
  ["never true", "vector(1) > 2"],
  ["always true", "vector(1)"],
] as const) {
  test(`A12 the cases notice every rule that is ${what}`, async () => {
    const spoiled = (rule: Rule) => (isAlert(rule) ? { ...rule, expr } : rule);
    for (const file of FILES) {
      const groups = rulesOf(file).groups.map((group) => ({ ...group, rules: group.rules.map(spoiled) }));
      writeFileSync(join(scratch, `${file}.yaml`), stringify({ groups }));
      writeFileSync(join(scratch, `${file}.test.yaml`), fileText(`${file}.test.yaml`));
      const told = await run(promtool, ["test", "rules", `${file}.test.yaml`], { cwd: scratch }).then(
        () => assert.fail("the cases noticed nothing"),
        ({ stdout, stderr }: { stdout: string; stderr: string }) => stdout + stderr,
      );
      for (const { alert } of groups.flatMap((group) => group.rules).filter(isAlert)) {
        assert.match(told, new RegExp(`alertname: ${alert},`), alert);
      }
    }
  });
}

test("A12 every alert has a case in which it is told, and one in which it is not", () => {
  interface Cases {
    readonly tests: { alert_rule_test: { alertname: string; exp_alerts: unknown[] }[] }[];
  }
  const cases = FILES.flatMap((file) => (parse(fileText(`${file}.test.yaml`)) as Cases).tests).flatMap(
    ({ alert_rule_test: checks }) => checks,
  );
  for (const { alert } of alerts) {
    const sizes = cases.filter(({ alertname }) => alertname === alert).map(({ exp_alerts: told }) => told.length);
    assert.ok(sizes.includes(0) && sizes.some((size) => size > 0), `${alert}: ${sizes}`);
  }
});

test("A12 every alert leads to a chapter of the runbook that is there", () => {
  for (const { alert, annotations } of alerts) {
    const [path = "", anchor = ""] = (annotations.runbook_url ?? "").split("#");
    const anchors = anchorsOf(readFileSync(fileURLToPath(new URL(`../${path}`, import.meta.url)), "utf8"));
    assert.ok(anchors.has(anchor), `${alert}: ${path} has no #${anchor}`);
  }
});

/** Every family that the service can show, with samples of each. */
async function shownNames(): Promise<Set<string>> {
  const ends = { pipeline: "p", source: "s.t", destination: "d" };
  const pushes = new PushTally();
  pushes.expect("loki");
  const clock = { wallMs: () => 0, monotonicMs: () => 0, sleep: async () => {} };
  const last = { pending: 1, isEstimate: false, oldestAgeMs: 1, behindDead: 0, dead: 0 };
  const condition = new Condition(clock);
  condition.listen({
    on: (name, listener) => {
      const warning = { pipeline: "p", code: "ROWS_HIDDEN", reason: "hidden" };
      if (name === "SourceWarned") listener({ name, timestamp: 0, ...warning } as never);
      return () => {};
    },
  });
  const answers = new AnswerBook(clock);
  answers.of("d").end(answers.of("d").begin(), true);
  const metrics = new Metrics({
    version: "1",
    condition,
    backlog: async () => [{ ...ends, schema: "s", last, lagMs: 1 }],
    unrouted: () => [{ source: "s.t", events: 0, isEstimate: false, oldestAgeMs: null }],
    pipelines: () => [ends],
    pushes,
    answers,
    causes: async () => [
      { ...ends, code: "dead-letters", grade: "attention", what: "", fix: null, since: null, link: "/#/" },
    ],
    logs: async () => [{ pipeline: "p", lag: 1, parked: 0, slotRetainedBytes: 1, isRetentionWaiting: false }],
  });
  metrics.listen(
    {
      on: (name, listener) => {
        const latency = { counts: [...LATENCY_BOUNDS_MS.map(() => 1), 0], sumMs: 1 };
        const batch = { pipeline: "p", lane: 0, delivered: 1, failed: 0, durationMs: 1, latency };
        if (name === "BatchSettled") listener({ name, timestamp: 0, ...batch } as never);
        if (name === "SourceAnswered") listener({ name, timestamp: 0, pipeline: "p", pollMs: 1 } as never);
        return () => {};
      },
    },
    [ends],
  );
  metrics.expect(ends);
  const { text } = await metrics.text();
  metrics.stop();
  return new Set([...(text + (await shownOfRequests())).matchAll(/^([a-z]\w*)/gm)].map(([, name]) => name!));
}

async function shownOfRequests(): Promise<string> {
  const group = { context: "c", aggregate: "a", namespace: "n", queue: "q", jobName: "j", markerMs: 1 };
  const metrics = new RequestMetrics("1", [group]);
  metrics.skipped(group, null, "gone");
  metrics.turned(group, "running");
  const { text } = await metrics.text();
  metrics.stop();
  return text;
}

const OURS =
  /\b(?:outbox_(?:relay_[a-z_0-9]+|events_total|dispatched_total|skipped_total|lag_ms)|(?:process|nodejs)_[a-z_0-9]+)\b/g;

test("A11 A12 A21 every metric that the rules and the dashboard ask for is one that the service shows", async () => {
  const shown = await shownNames();
  const dashboard = JSON.parse(fileText("dashboard.json")) as {
    readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[];
    readonly templating: unknown;
    readonly annotations: unknown;
  };
  const asked = [
    ...rules.map(({ expr }) => expr),
    ...dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
    JSON.stringify([dashboard.templating, dashboard.annotations]),
  ].flatMap((expr) => expr.match(OURS) ?? []);
  assert.ok(asked.length > 30);
  assert.deepEqual(
    [...new Set(asked)].filter((name) => !shown.has(name)),
    [],
  );
});

test("A11 the page about monitoring names every metric that the service shows, and no other", async () => {
  const page = readFileSync(fileURLToPath(new URL("../docs/operate/monitoring.md", import.meta.url)), "utf8");
  const named = new Set(page.match(OURS));
  const shown = new Set([...(await shownNames())].map((name) => name.replace(/_(?:bucket|sum|count)$/, "")));
  assert.deepEqual([...named].sort(), [...shown].sort());
});

test("A21 the dashboard takes any Prometheus as its source, and shows what an operator asks first", () => {
  const text = fileText("dashboard.json");
  const dashboard = JSON.parse(text) as { readonly panels: readonly { readonly title: string; readonly id: number }[] };
  assert.deepEqual([...new Set(text.match(/"uid": "[^"]*"/g))].sort(), [
    `"uid": "\${datasource}"`,
    '"uid": "outbox-relay"',
  ]);
  const titles = dashboard.panels.map(({ title }) => title).join(", ");
  for (const wanted of [
    "Lag",
    "Events in and out",
    "Dead letters",
    "Delivery latency",
    "Poll duration",
    "Destinations",
  ]) {
    assert.ok(titles.includes(wanted), `${wanted} is not among ${titles}`);
  }
  assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length);
});
