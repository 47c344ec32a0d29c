import type { SeededRandom } from "../../../src/testing/simulator/seeded-random.ts";
import type { Fate } from "../../servers/kafka-proxy.ts";
import type { KafkaRequest } from "../../servers/kafka-proxy-wire.ts";

export interface WireFaultOptions {
  readonly random: SeededRandom;
  /** Between two mistreated requests, on average. */
  readonly everyMs: number;
  /** A client waits so long for an answer. */
  readonly requestTimeoutMs: number;
  /** The broker ends a transaction by itself after so long. */
  readonly transactionTimeoutMs: number;
}

const pass: Fate = { kind: "pass" };

/**
 * Mistreats a request of a transaction now and then. By time and not by share, so that a busy run is not strangled and a
 * slow one is still troubled.
 */
export function wireFaults(options: WireFaultOptions): (request: KafkaRequest) => Fate {
  const { random, everyMs } = options;
  let dueMs = performance.now() + random.between(0, everyMs);
  return () => {
    if (performance.now() < dueMs) return pass;
    dueMs = performance.now() + random.between(0, 2 * everyMs);
    return fateOf(options);
  };
}

function fateOf({ random, requestTimeoutMs, transactionTimeoutMs }: WireFaultOptions): Fate {
  if (random.chance(0.08)) return { kind: "lose" };
  if (random.chance(0.12)) return { kind: "lose-answer", reset: random.chance(0.7) };
  const reset = random.chance(0.6);
  // Short: the successor is just about to begin. Long: past the patience of the client, of the lease and of the broker.
  if (random.chance(0.5)) return { kind: "hold", ms: random.between(50, requestTimeoutMs), reset };
  return { kind: "hold", ms: random.between(requestTimeoutMs, transactionTimeoutMs * 1.4), reset };
}
