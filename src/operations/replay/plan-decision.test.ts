import assert from "node:assert/strict";
import { test } from "node:test";
import { decide } from "./plan-decision.ts";
import { onlyStratum, type PlanStratum, STRATA_MAX, stratumFinder, topStrata } from "./plan-strata.ts";

const progress = (some: object) => ({ waiting: 0, sent: 0, done: 0, failed: 0, left: 0, ...some });
const stratum = (some: object = {}): PlanStratum => ({ ...onlyStratum(9_999, progress({})), ...some });
const facts = { action: "replay", stage: "first", failedNow: 0, failures: [], strata: [stratum()] } as const;

test("F3 one event goes first, then ten, then the rest, in proportion to what was delivered", () => {
  const go = (stage: "first" | "ten" | "rest", passed: number, some: { sent?: number; left?: number }) => {
    const strata = [stratum({ passed, ...some })];
    const decision = decide({ ...facts, stage, strata, progress: progress({ waiting: 9_999, ...some }) });
    return decision.kind === "go" ? [decision.stage, decision.room] : [decision.kind];
  };
  assert.deepEqual(go("first", 0, {}), ["first", 1]);
  assert.deepEqual(go("first", 0, { sent: 1 }), ["first", 0], "it waits for the first");
  assert.deepEqual(go("first", 0, { left: 1 }), ["first", 1], "a skipped one proves nothing");
  assert.deepEqual(go("first", 1, {}), ["ten", 10]);
  assert.deepEqual(go("ten", 4, { sent: 3 }), ["ten", 4]);
  assert.deepEqual(go("ten", 11, { sent: 1 }), ["ten", 0]);
  assert.deepEqual(go("ten", 11, {}), ["rest", 50]);
  assert.deepEqual(go("rest", 100, { sent: 150 }), ["rest", 250]);
  assert.deepEqual(go("rest", 5_000, { sent: 1_999 }), ["rest", 1], "never more than 2,000 in flight");
  assert.partialDeepStrictEqual(decide({ ...facts, action: "discard", progress: progress({ waiting: 5 }) }), {
    kind: "go",
    stage: "rest",
    room: 1_000,
  });
  assert.deepEqual(decide({ ...facts, progress: progress({ done: 3 }) }), { kind: "done" });
});

test("H1 F3 each stratum has a canary of its own, and no other event is sent before all of them are delivered", () => {
  const [orders, mails] = [
    stratum({ destination: "http", type: "order" }),
    stratum({ destination: "mail", type: "mail" }),
  ];
  const rooms = (stage: "first" | "ten" | "rest", strata: readonly PlanStratum[], sent = 0) => {
    const decision = decide({ ...facts, stage, strata, progress: progress({ waiting: 99, sent }) });
    return decision.kind === "go" ? [decision.stage, ...decision.rooms.map((room) => Math.min(room, 99))] : [];
  };
  assert.deepEqual(rooms("first", [orders, mails]), ["first", 1, 1]);
  assert.deepEqual(
    rooms(
      "first",
      [
        { ...orders, passed: 1 },
        { ...mails, sent: 1 },
      ],
      1,
    ),
    ["first", 0, 0],
  );
  assert.deepEqual(rooms("first", [{ ...orders, passed: 1 }, mails]), ["first", 0, 1], "the second is not tested yet");
  assert.deepEqual(
    rooms("first", [
      { ...orders, passed: 1 },
      { ...mails, passed: 1 },
    ]),
    ["ten", 10, 10],
  );
  assert.deepEqual(
    rooms("first", [
      { ...orders, passed: 1 },
      { ...mails, left: mails.count },
    ]),
    ["ten", 10, 1],
  );
  assert.deepEqual(
    rooms("ten", [
      { ...orders, passed: 11 },
      { ...mails, passed: 3, done: mails.count },
    ]),
    ["rest", 99, 8],
  );
  assert.deepEqual(rooms("rest", [{ ...orders, passed: 11 }, mails]), ["rest", 99, 1], "it waited behind others");
  assert.deepEqual(
    rooms(
      "rest",
      [
        { ...orders, passed: 11 },
        { ...mails, sent: 1 },
      ],
      1,
    ),
    ["rest", 99, 0],
  );
});

test("H1 F3 the largest strata are named, the smaller ones are combined, and each event has its stratum", () => {
  const made = Array.from({ length: 30 }, (_, index) => ({
    destination: "http",
    type: `type-${index}`,
    group: "abc",
    error: "no",
    count: 100 - index,
  }));
  const strata = topStrata(made);
  assert.deepEqual([strata.length, strata.at(-1)?.destination, strata.at(-1)?.count], [STRATA_MAX + 1, null, 755]);
  const placeOf = stratumFinder(strata.map((it) => ({ ...stratum(), ...it })));
  assert.deepEqual(
    [placeOf("a.b->http", "type-3", "abc"), placeOf("a.b->http", "type-25", "abc"), placeOf("a.b->x", "type-3", "abc")],
    [3, STRATA_MAX, STRATA_MAX],
  );
});

test("H1 F3 a destination that has only small strata is tested by itself too", () => {
  const of = (destination: string, number: number, count: number) =>
    Array.from({ length: number }, (_, index) => ({
      ...{ destination, type: `${destination}-${index}`, group: "abc", error: "no" },
      count: count - index,
    }));
  const strata = topStrata([...of("http", 25, 100), ...of("mail", 3, 9), ...of("crm", 1, 2)]);
  const named = (destination: string) => strata.filter((it) => it.destination === destination).map(({ type }) => type);
  assert.deepEqual([strata.length, named("mail"), named("crm")], [STRATA_MAX + 1, ["mail-0"], ["crm-0"]]);
  assert.deepEqual(named("http").slice(-1), [`http-${STRATA_MAX - 3}`], "the largest ones first");
  const decision = decide({
    ...facts,
    strata: strata.map((it) => ({ ...stratum(), ...it })),
    progress: progress({ waiting: 9_999 }),
  });
  assert.deepEqual(decision.kind === "go" && decision.rooms, Array(STRATA_MAX + 1).fill(1));

  const many = Array.from({ length: 40 }, (_, index) => of(`crm-${index}`, 2, 50 - index)).flat();
  const each = topStrata(many.toSorted((left, right) => right.count - left.count));
  assert.equal(new Set(each.map(({ destination }) => destination)).size, 41, "all destinations, and the rest");
});

test("F3 the same error ends a plan at any stage, any error ends the first two, and many others the last", () => {
  const other = { id: "e1", reason: "no", isSame: false, stratum: 0 };
  const stopped = (stage: "ten" | "rest", failures: readonly (typeof other)[], failedNow = 1, passed = 20) => {
    const strata = [stratum({ passed }), stratum({ destination: "mail", type: "mail", group: "abc" })];
    const decision = decide({ ...facts, stage, strata, failedNow, failures, progress: progress({ waiting: 1 }) });
    return decision.kind === "stop" ? decision.why : null;
  };
  assert.equal(stopped("ten", []), null);
  assert.match(stopped("ten", [other]) ?? "", /e1 .*one of the first/);
  assert.equal(stopped("rest", [other]), null);
  assert.match(stopped("rest", [other], 20) ?? "", /20 failed/);
  assert.match(stopped("rest", [other, { ...other, isSame: true }]) ?? "", /same error/);
  const why = stopped("rest", [{ ...other, stratum: 1 }]);
  assert.equal(why, "e1 (mail to mail, error abc), one of the first, failed again: no", "the stratum is named");
  const last = decide({ ...facts, failures: [{ ...other, isSame: true }], progress: progress({ failed: 1 }) });
  assert.equal(last.kind, "stop", "also with the last event");
});
