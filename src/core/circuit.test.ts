import assert from "node:assert/strict";
import { test } from "node:test";
import { Circuit } from "./circuit.ts";

const POLICY = { initialMs: 100, maxMs: 1_000 };
/** The middle of the spread: a delay as it is computed. */
const draw = 0.5;

function opened(nowMs = 0): Circuit {
  const circuit = new Circuit(POLICY);
  assert.equal(circuit.fail(nowMs, "refused", { draw, probe: false }), true);
  return circuit;
}

/** Sends the probe that is due now and fails it. */
function failProbe(circuit: Circuit, nowMs: number): void {
  assert.deepEqual(circuit.admission(nowMs), { admits: "probe" });
  circuit.beginProbe();
  assert.equal(circuit.fail(nowMs, "still refused", { draw, probe: true }), false);
}

test("a closed circuit admits everything", () => {
  const circuit = new Circuit(POLICY);
  assert.deepEqual(circuit.admission(0), { admits: "all" });
  assert.equal(circuit.isOpen, false);
});

test("the first failure opens it and keeps the reason", () => {
  const circuit = opened();
  assert.equal(circuit.isOpen, true);
  assert.equal(circuit.reason, "refused");
  assert.deepEqual(circuit.admission(40), { admits: "none", waitMs: 60 });
});

test("after the delay one probe may be sent, and nothing besides it", () => {
  const circuit = opened();
  assert.deepEqual(circuit.admission(100), { admits: "probe" });
  circuit.beginProbe();
  assert.equal(circuit.admission(100).admits, "none");
  circuit.cancelProbe();
  assert.deepEqual(circuit.admission(100), { admits: "probe" });
});

test("the delay doubles with each failed probe up to the maximum", () => {
  const circuit = opened();
  let nowMs = 100;
  const delays: number[] = [];
  for (let probe = 0; probe < 6; probe++) {
    failProbe(circuit, nowMs);
    const admission = circuit.admission(nowMs);
    assert.ok(admission.admits === "none");
    delays.push(admission.waitMs);
    nowMs += admission.waitMs;
  }
  assert.deepEqual(delays, [200, 400, 800, 1_000, 1_000, 1_000]);
});

test("late answers to sends from before it opened neither prolong nor close it", () => {
  const circuit = opened();
  assert.equal(circuit.fail(50, "late", { draw, probe: false }), false);
  assert.equal(circuit.succeed({ probe: false }), false);
  assert.deepEqual([circuit.reason, circuit.admission(50)], ["refused", { admits: "none", waitMs: 50 }]);
});

test("a probe's success closes it and forgets the failures", () => {
  const circuit = opened();
  failProbe(circuit, 100);
  circuit.beginProbe();
  assert.equal(circuit.succeed({ probe: true }), true);
  assert.deepEqual([circuit.isOpen, circuit.reason, circuit.admission(301)], [false, "", { admits: "all" }]);
  circuit.fail(400, "again", { draw, probe: false });
  assert.deepEqual(circuit.admission(400), { admits: "none", waitMs: 100 });
});

test("H1 a destination that says when to retry gets the probe then, not sooner and hardly later", () => {
  for (const afterMs of [200, 5_000]) {
    const circuit = new Circuit(POLICY);
    circuit.fail(0, "429", { draw: 0, probe: false, afterMs });
    assert.deepEqual(circuit.admission(0), { admits: "none", waitMs: afterMs });
    for (let probe = 1; probe < 10; probe++) {
      const nowMs = probe * 10_000;
      circuit.beginProbe();
      circuit.fail(nowMs, "429", { draw: 0.999, probe: true, afterMs });
      const admission = circuit.admission(nowMs);
      assert.ok(admission.admits === "none" && admission.waitMs >= afterMs && admission.waitMs < 1.1 * afterMs);
    }
  }
});

test("H1 there is always a pause before a probe, and a destination that asks for more time gets it", () => {
  const circuit = new Circuit(POLICY);
  circuit.fail(0, "503", { draw: 0, probe: false, afterMs: 0 });
  assert.deepEqual(circuit.admission(0), { admits: "none", waitMs: 100 });
  circuit.fail(10, "503", { draw: 0, probe: false, afterMs: 2_000 });
  assert.deepEqual(circuit.admission(10), { admits: "none", waitMs: 2_000 });
});

test("H1 each failed probe lets more keys try next time, and of keys tried together only the first failure counts", () => {
  const circuit = opened();
  const keys: number[] = [];
  for (let nowMs = 100, probe = 0; probe < 8; probe++, nowMs += 10_000) {
    keys.push(circuit.probeKeys);
    circuit.beginProbe();
    for (let key = 0; key < 5; key++) circuit.fail(nowMs, "no", { draw, probe: true });
  }
  assert.deepEqual(keys, [1, 2, 4, 8, 16, 32, 64, 64]);
  assert.equal(circuit.succeed({ probe: true }), true);
});

test("the draw spreads the probes of many instances by a quarter to each side", () => {
  for (const [drawn, waitMs] of [
    [0, 75],
    [0.5, 100],
    [1, 125],
  ] as const) {
    const circuit = new Circuit(POLICY);
    circuit.fail(0, "refused", { draw: drawn, probe: false });
    assert.deepEqual(circuit.admission(0), { admits: "none", waitMs });
  }
});
