import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { bundled, CLIENTS } from "../../deploy/cdk/bundle.ts";
import { relayEntries } from "../../deploy/cdk/relay-entries.ts";
import { SCHEMES } from "../../src/config/destinations/schemes.ts";

const cdk = resolve(import.meta.dirname, "../../deploy/cdk");
const application = resolve(import.meta.dirname, "../../examples/serverless");

interface Written {
  readonly Resources: Readonly<Record<string, { readonly Type: string }>>;
}

let outdir: string;
before(() => {
  outdir = mkdtempSync(join(tmpdir(), "outbox-relay-cdk-"));
});
after(() => rmSync(outdir, { recursive: true, force: true }));

test("D2: the app makes its stack of the folder that it is given", async () => {
  const own = join(outdir, "app");
  const env = {
    ...process.env,
    NOTIFICATIONS_BROKERS: "kafka.example:9092",
    PAYROLL_URL: "https://payroll.example",
    CALLERS_QUEUE: "eu-central-1/callers.fifo",
    CDK_OUTDIR: own,
    CDK_CONTEXT_JSON: JSON.stringify({ application }),
  };
  await promisify(execFile)(process.execPath, [resolve(cdk, "app.ts")], { env, cwd: outdir });
  const { Resources } = JSON.parse(readFileSync(join(own, "OutboxRelay.template.json"), "utf8")) as Written;
  const countOf = (type: string) => Object.values(Resources).filter(({ Type }) => Type === type).length;
  assert.deepEqual([countOf("AWS::Lambda::Function"), countOf("AWS::SNS::Subscription")], [3, 0]);
  const { app } = JSON.parse(readFileSync(resolve(cdk, "cdk.json"), "utf8")) as { app: string };
  assert.equal(app, "node app.ts");
});

/** An application with one relay, and what is wrong with it. */
function applicationOf(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(outdir, "application-"));
  for (const name of ["relays", "lambdas"]) mkdirSync(join(folder, name));
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
  return folder;
}

const relayTo = (target: string, type = "SendMail") => `export default { type: "${type}", target: ${target} };`;

test("D1 D2: a relay without its entry, its variable or its address stops the deployment, and the message names it", async () => {
  const entry = { "lambdas/mail.ts": "" };
  const cases: readonly [Readonly<Record<string, string>>, RegExp][] = [
    [{}, /contains no file <intent>-relay\.ts/],
    [{ "relays/mail-relay.ts": relayTo('{ url: "stdout:" }') }, /lambdas\/mail\.ts is missing/],
    [{ ...entry, "relays/post-relay.ts": relayTo('{ url: "stdout:" }') }, /write relays\/mail-relay\.ts/],
    [{ ...entry, "relays/mail-relay.ts": "export const relay = 1;" }, /no default export/],
    [{ ...entry, "relays/mail-relay.ts": relayTo('{ destination: "x" }') }, /its target is \{ url \}/],
    [
      { ...entry, "relays/mail-relay.ts": relayTo("{ url: process.env.NO_SUCH_ADDRESS }") },
      /mail reads NO_SUCH_ADDRESS/,
    ],
    [
      {
        ...entry,
        "lambdas/post.ts": "",
        "relays/mail-relay.ts": relayTo('{ url: "stdout:" }'),
        "relays/post-relay.ts": relayTo('{ url: "stdout:" }'),
      },
      /mail and post both relay SendMail/,
    ],
  ];
  for (const [files, said] of cases) await assert.rejects(relayEntries(applicationOf(files)), said, String(said));
  const strange = applicationOf({ ...entry, "relays/mail-relay.ts": relayTo('{ url: "smoke://hill" }') });
  await assert.rejects(
    bundled(await relayEntries(strange), outdir),
    /target of mail begins with smoke: known are kafka/,
  );
});

test("D2: every kind of destination is known to the bundles, so that its client comes along", () => {
  assert.deepEqual(Object.keys(CLIENTS).sort(), SCHEMES.flatMap(({ schemes }) => schemes).sort());
});
