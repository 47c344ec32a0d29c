import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { loadConfig } from "../load-config.ts";
import { ConfigProblems } from "./config-problems.ts";

let folder: string;
before(() => {
  folder = mkdtempSync(join(tmpdir(), "outbox-relay-faults-"));
});
after(() => rmSync(folder, { recursive: true }));

const BEGINNING = `database: { url: "postgres://u:p@localhost/db" }
sources: { schemas: [a] }
destinations:
`;

async function problemsOf(yaml: string, flags: readonly string[] = []): Promise<readonly string[]> {
  writeFileSync(join(folder, "c.yaml"), BEGINNING + yaml);
  try {
    await loadConfig({ env: {}, cwd: folder, file: "c.yaml", flags });
  } catch (error) {
    assert.ok(error instanceof ConfigProblems, String(error));
    return error.problems;
  }
  return [];
}

/** Only the locations, which are what an operator looks for. */
const placesOf = (problems: readonly string[]) => problems.map((it) => /^\S+ in c\.yaml:\d+|^.{0,60}/.exec(it)?.[0]);

test("A14 all problems of routes and destinations are reported at once, each with its item and line", async () => {
  const problems = await problemsOf(`  crm: { url: "gopher://x" }
  queue: { url: "amqp://localhost" }
routes:
  - types: order.*
    destination: crn
    topic: "{nonsense}"
  - when: { keey: x }
    destination: queue
  - types: order.placed
    destination: crm
`);
  assert.deepEqual(placesOf(problems), [
    "destinations.crm.url in c.yaml:4",
    "destinations.queue.url in c.yaml:5",
    "routes[0].topic in c.yaml:9",
    "routes[0] in c.yaml:7",
    "routes[1].when in c.yaml:10",
    "routes[2] in c.yaml:12",
  ]);
  assert.match(problems[3] ?? "", /leads to the unknown destination "crn"\. Did you mean "crm"\?/);
});

test("A14 an invalid value hides no problem of other items", async () => {
  const problems = await problemsOf(`  crm: { url: "stdout:" }
routes:
  - types: order.*
    destination: crn
  - types: invoice.*
    onExhausted: skipp
  - when: { keey: x }
    destination: crm
delivery: { lanse: 3 }
`);
  assert.deepEqual(placesOf(problems), [
    "delivery in c.yaml:12",
    "routes[1].onExhausted in c.yaml:9",
    "routes[0] in c.yaml:6",
    "routes[2].when in c.yaml:10",
  ]);
  assert.equal(problems[1], 'routes[1].onExhausted in c.yaml:9: "skipp"; use park, block or skip');
});

test("A14 no false problems: neither of a route to an invalid destination, nor of types that an invalid item would match", async () => {
  const ofDestination = await problemsOf(`  crm: { url: "gopher://x" }
routes:
  - destination: crm
`);
  assert.deepEqual(placesOf(ofDestination), ["destinations.crm.url in c.yaml:4"]);
  const ofItem = await problemsOf(`  crm: { url: "stdout:" }
routes:
  - onExhausted: skipp
  - types: order.placed
`);
  assert.deepEqual(placesOf(ofItem), ["routes[0].onExhausted in c.yaml:6"]);
  const unreadable = await problemsOf(`  crm: nonsense
routes:
  - destination: crm
`);
  assert.equal(unreadable.length, 1, unreadable.join("\n"));
});

test("A14 a destination that cannot be read hides no problem of others, and a list says what it may contain", async () => {
  const problems = await problemsOf(`  crm: { url: "gopher://x" }
  queue: "amqp://localhost"
routes:
  - types: order.*
    destination: queue
    topic: "{nonsense}"
  - types: 5
    destination: crm
`);
  assert.deepEqual(placesOf(problems), [
    "destinations.queue in c.yaml:5",
    "routes[1].types in c.yaml:10",
    "destinations.crm.url in c.yaml:4",
    "routes[0].topic in c.yaml:9",
  ]);
  assert.match(problems[0] ?? "", /write its settings, such as \{ url: /);
  assert.match(problems[1] ?? "", /write a text, or a list of texts$/);
});

test("A14 routes from other levels are named as they were written", async () => {
  const yaml = `  crm: { url: "stdout:" }\n`;
  const [problem] = await problemsOf(yaml, ['OUTBOX_ROUTES=[{"destination":"crn"}]']);
  assert.match(problem ?? "", /^--set OUTBOX_ROUTES\[0\] leads to the unknown destination "crn"/);
});
