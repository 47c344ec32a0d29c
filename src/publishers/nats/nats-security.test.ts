import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Certificates, createCertificates } from "../../../test/servers/certificates.ts";
import { type NatsServer, startNats } from "../../../test/servers/nats.ts";
import type { Outcome } from "../../core/outcome.ts";
import type { NatsPublisherOptions } from "./nats-config.ts";
import { natsPublisher } from "./nats-publisher.ts";

let folder: string;
let certificates: Certificates;
let secure: NatsServer;
let plain: NatsServer;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "outbox-relay-nats-"));
  certificates = await createCertificates(folder);
  const { authority, server } = certificates;
  const tls = `tls { cert_file: "${server.certificateFile}", key_file: "${server.keyFile}",
    ca_file: "${authority.certificateFile}", verify: true }`;
  secure = await startNats({ config: `authorization { token: secret-token }\n${tls}` });
  plain = await startNats({ jetStream: false });
});
after(async () => {
  await secure?.[Symbol.asyncDispose]();
  await plain?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** The server has no stream: who is let in hears of that, who is not hears of something else. */
async function attempt(port: number, options: Partial<NatsPublisherOptions>): Promise<string> {
  const publisher = natsPublisher({ servers: [`localhost:${port}`], ...options });
  const payload = Buffer.from("{}");
  const event = { id: "1", type: "any", key: null, payload, headers: {}, correlationId: null, createdAt: null };
  const outcomes: Outcome[] = [];
  try {
    const batch = [{ event, topic: "any", key: null, headers: {}, payload }];
    await publisher.publish(batch, (_, outcome) => outcomes.push(outcome), AbortSignal.timeout(5_000));
  } finally {
    await publisher.close();
  }
  const [outcome] = outcomes;
  return outcome?.kind === "retry" ? `${outcome.scope}: ${outcome.reason}` : JSON.stringify(outcome);
}

const identity = () => ({ cert: certificates.client.certificate, key: certificates.client.key });

test("A20 NATS over TLS with a certificate of its own and a token: the relay is let in", async () => {
  const tls = { ca: certificates.authority.certificate, ...identity() };
  assert.match(await attempt(secure.port, { tls, token: "secret-token" }), /^topic: .*no stream takes it/);
});

test("A20 a server with an untrusted certificate gets no event", async () => {
  const reason = await attempt(secure.port, { tls: identity(), token: "secret-token" });
  assert.match(reason, /^destination: .*check tls\.ca/);
});

test("A20 a wrong token is reported without showing it", async () => {
  const tls = { ca: certificates.authority.certificate, ...identity() };
  const reason = await attempt(secure.port, { tls, token: "wrong-token" });
  assert.match(reason, /^destination: .*check user, password, token/);
  assert.doesNotMatch(reason, /wrong-token/);
});

test("A20 with required TLS there is no fallback to plain text", async () => {
  assert.match(await attempt(plain.port, { tls: true }), /^destination: .*the server has no TLS/);
});
