import { createRelayClient, RelayApiError } from "../../src/client/index.ts"; // in your project: "outbox-relay/client"

const { RELAY_URL = "http://127.0.0.1:3012", RELAY_TOKEN } = process.env;
const client = createRelayClient({ url: RELAY_URL, ...(RELAY_TOKEN === undefined ? {} : { token: RELAY_TOKEN }) });

// What waits, and what failed?
const { pipelines } = await client.status();
for (const { deadLetters, parkedKeys, pipeline, state } of pipelines) {
  console.log(`${pipeline}: ${state}, ${deadLetters} dead letters, ${parkedKeys} keys blocked`);
}
const { groups } = await client.groupDeadLetters();
for (const { count, error, types } of groups) console.log(`${count} of ${types.join(", ")}: ${error}`);

// Search, page by page, and look at one of them.
const found: string[] = [];
for await (const { events } of client.pages("listEvents", { q: "type:order.* state:dead", limit: 2 })) {
  found.push(...events.map(({ id }) => id));
}
const one = await client.showEvent({ id: found[0] ?? "" });
console.log(`${found.length} found; one of key ${one.key} has ${one.followers?.count ?? 0} events behind it`);

// Pause and limit while the receiver is repaired, then go on.
const pipeline = pipelines[0]?.pipeline ?? "";
await client.pausePipeline({ name: pipeline, reason: "the receiver is repaired" });
await client.limitPipeline({ name: pipeline, perSecond: 50, reason: "it is cold" });
const paused = (await client.listPipelines()).pipelines.find((it) => it.pipeline === pipeline);
console.log(`paused: ${paused?.pause?.reason}; at most ${paused?.limit?.perSecond} events per second`);
await client.resumePipeline({ name: pipeline });
await client.limitPipeline({ name: pipeline, perSecond: null });

// A plan freezes the list of events and changes nothing yet. Check it, run it, wait for its end.
const plan = await client.planReplay({ q: "type:order.*", reason: "the receiver is repaired" });
console.log(`dry run: ${plan.action} ${plan.count} events of ${plan.keys} keys`);
await client.runReplay({ id: plan.id });
const ended = await client.waitForReplay(plan.id);
console.log(`${ended.state}: ${ended.progress.done} of ${ended.count} delivered`);

// Errors carry a code for programs, and what to do for people.
try {
  await client.pausePipeline({ name: "orders.outbox->nowhere" });
} catch (error) {
  if (!(error instanceof RelayApiError)) throw error;
  console.log(`${error.status} ${error.code}: ${error.fix}`);
}

// Who did what, and why.
const { entries } = await client.listAudit({ target: pipeline });
for (const { action, reason } of entries) console.log(`audit: ${action}${reason === null ? "" : ` (${reason})`}`);
