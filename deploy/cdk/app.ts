import { join, resolve } from "node:path";
import { App } from "aws-cdk-lib";
import { bundled } from "./bundle.ts";
import { OutboxRelayStack } from "./outbox-relay-stack.ts";
import { relayEntries } from "./relay-entries.ts";

// `cdk deploy -c application=<folder> -c alertEmail=<address>`
const app = new App();
const folder = resolve(import.meta.dirname, app.node.tryGetContext("application") ?? "../../examples/serverless");
new OutboxRelayStack(app, "OutboxRelay", {
  relays: await bundled(await relayEntries(folder), join(app.outdir, "bundles")),
  alertEmail: app.node.tryGetContext("alertEmail"),
  targetKeys: keysOf(app.node.tryGetContext("targetKeys")),
});
app.synth();

/** In cdk.json it is an object, on the command line JSON. */
function keysOf(written: unknown): Readonly<Record<string, string>> | undefined {
  return (typeof written === "string" ? JSON.parse(written) : written) as Readonly<Record<string, string>> | undefined;
}
