import assert from "node:assert/strict";
import { test } from "node:test";
import { bulkLogger } from "./bulk-logger.ts";
import { createLogger } from "./logger.ts";

test("E7 a line of the logger for very many is what the logger itself would have written, without its secrets", () => {
  const lines: string[] = [];
  const logger = createLogger({
    service: "shop-relay",
    version: "1.2.3",
    level: "info",
    redact: (line) => line.replaceAll("hunter2", "[redacted]"),
    stream: { write: (line: string) => void lines.push(line) },
  });
  const bindings = { event: "RequestDispatched", context: "payment.payout" };
  const fields = { eventId: "a", text: 'ä " \\ \n \u2028 hunter2', number: 7, absent: undefined };
  const bulk = bulkLogger(logger, bindings);
  logger.child(bindings).info(fields, "it was done");
  bulk.info(fields, "it was done");
  const withoutTime = lines.map((line) => line.replace(/"time":"[\d-]{10}T[\d:.]{12}Z"/, "TIME"));
  assert.match(withoutTime[0]!, /"level":"info",TIME,"service"/);
  assert.equal(withoutTime[1], withoutTime[0]);
  bulk.level = "warn";
  bulk.info(fields, "it was done");
  assert.equal(lines.length, 2);
});
