import { Writable } from "node:stream";
import { test } from "node:test";
import { delivered, rejected } from "../../core/outcome.ts";
import { type MemoryAnswer, memoryPublisher } from "../../publishers/memory/memory-publisher.ts";
import { stdoutPublisher } from "../../publishers/stdout/stdout-publisher.ts";
import { applicableCases } from "./contract-case.ts";
import { publisherContract } from "./publisher-contract.ts";
import type { PublisherHarness, Received } from "./publisher-subject.ts";

const harnesses: readonly (readonly [adapter: string, harness: PublisherHarness])[] = [
  ["memory publisher", memoryHarness({ keyOrderInBatch: true, deduplicates: false })],
  ["memory publisher that deduplicates", memoryHarness({ keyOrderInBatch: false, deduplicates: true })],
  ["stdout publisher", stdoutHarness()],
];

for (const [adapter, harness] of harnesses) {
  for (const check of applicableCases(publisherContract, harness))
    test(`${adapter}: ${check.rule}`, () => check.run(harness));
}

function memoryHarness(options: { keyOrderInBatch: boolean; deduplicates: boolean }): PublisherHarness {
  return {
    capabilities: { ...options, refuses: true, stalls: true, stops: true },
    async open() {
      const publisher = memoryPublisher(options);
      const refused = new Set<string>();
      const waiting: (() => void)[] = [];
      let isStalled = false;
      publisher.respond(({ event }): MemoryAnswer | Promise<MemoryAnswer> => {
        if (refused.has(event.id)) return rejected("refused");
        return isStalled ? new Promise((resolve) => waiting.push(() => resolve(delivered))) : delivered;
      });
      return {
        publisher,
        topic: "contract",
        received: async () =>
          publisher.delivered.map(({ event, topic, key, headers, payload }): Received => {
            return { id: event.id, topic, key, headers, payload };
          }),
        refuse: async (message) => {
          refused.add(message.event.id);
          return message;
        },
        stall: async () => {
          isStalled = true;
        },
        resume: async () => {
          isStalled = false;
          for (const answer of waiting.splice(0)) answer();
        },
        stop: async () => publisher.down("stopped"),
        start: async () => publisher.up(),
        close: async () => {},
      };
    },
  };
}

function stdoutHarness(): PublisherHarness {
  return {
    capabilities: { keyOrderInBatch: true, deduplicates: false, refuses: false, stalls: true, stops: false },
    async open() {
      const lines: string[] = [];
      const waiting: (() => void)[] = [];
      let isStalled = false;
      const stream = new Writable({
        write(chunk, _encoding, done) {
          const take = () => {
            lines.push(String(chunk));
            done();
          };
          if (isStalled) waiting.push(take);
          else take();
        },
      });
      return {
        publisher: stdoutPublisher({ stream }),
        topic: "contract",
        received: async () => lines.map(receivedOf),
        stall: async () => {
          isStalled = true;
        },
        resume: async () => {
          isStalled = false;
          for (const take of waiting.splice(0)) take();
        },
        close: async () => void stream.destroy(),
      };
    },
  };
}

function receivedOf(line: string): Received {
  const { id, topic, key, headers, payload, payloadEncoding = "utf8" } = JSON.parse(line);
  return { id, topic, key, headers, payload: Buffer.from(payload, payloadEncoding) };
}
