import assert from "node:assert/strict";
import { test } from "node:test";
import { context, createTraceState, ROOT_CONTEXT, trace } from "@opentelemetry/api";
import { activeTrace } from "./trace-context.ts";

const SPAN = { traceId: "a".repeat(32), spanId: "b".repeat(16), traceFlags: 1 };

function activate(span: typeof SPAN): void {
  const active = trace.setSpanContext(ROOT_CONTEXT, { ...span, traceState: createTraceState("shop=7") });
  context.disable();
  context.setGlobalContextManager({
    active: () => active,
    with: (_context, fn, self, ...args) => fn.call(self, ...args),
    bind: (_context, target) => target,
    enable() {
      return this;
    },
    disable() {
      return this;
    },
  });
}

test("C8 F5 the context of OpenTelemetry's active span becomes the W3C headers", async () => {
  activate(SPAN);
  assert.deepEqual(await activeTrace()(), {
    traceparent: `00-${SPAN.traceId}-${SPAN.spanId}-01`,
    tracestate: "shop=7",
  });
});

test("C8 F5 without an active span, without a valid one and without OpenTelemetry there is none", async () => {
  activate({ ...SPAN, traceId: "0".repeat(32) });
  assert.equal(await activeTrace()(), null);
  context.disable();
  assert.equal(await activeTrace()(), null);
  assert.equal(await activeTrace(() => Promise.reject(new Error("not installed")))(), null);
});
