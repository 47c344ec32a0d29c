import { after, before, describe, test } from "node:test";
import { makeHostile } from "../../../../test/servers/hostile-defaults.ts";
import type { PostgresServer } from "../../../../test/servers/postgres.ts";
import { applicableCases } from "../../../testing/contracts/contract-case.ts";
import { membershipContract } from "../../../testing/contracts/membership-contract.ts";
import { queueStoreContract } from "../../../testing/contracts/queue-store-contract.ts";
import type { StoreHarness } from "../../../testing/contracts/store-subject.ts";
import { openEmptied, ROLE, startServer, subjectOf } from "./fixture.test.ts";

for (const version of [15, 18] as const) {
  describe(`PostgreSQL ${version}${version === 15 ? ", H1 hostile defaults" : ""}`, () => {
    let server: PostgresServer;
    before(async () => {
      server = await startServer(version);
      if (version === 15) await makeHostile(server, ROLE);
    });
    after(async () => await server[Symbol.asyncDispose]());
    const harness: StoreHarness = {
      // The table has headers but no correlation id, so the case that asks for both does not bind it.
      capabilities: {
        durableClaims: true,
        ownStatus: true,
        payloads: "bytes",
        headers: false,
        prunes: true,
        restart: true,
      },
      open: async () => subjectOf(await openEmptied(server), server),
    };
    for (const check of applicableCases([...queueStoreContract, ...membershipContract], harness)) {
      test(`Open Outbox source: ${check.rule}`, () => check.run(harness));
    }
  });
}
