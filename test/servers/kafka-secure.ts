import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Certificates, createCertificates } from "./certificates.ts";
import { freePort } from "./free-port.ts";
import { singleNodeProperties } from "./kafka.ts";
import { allow, type Right, revoke } from "./kafka-acls.ts";
import { createTopic, deleteTopic, type TopicOptions, withAdmin } from "./kafka-admin.ts";
import { type KafkaProcess, spawnKafka } from "./kafka-process.ts";
import type { KafkaProperties } from "./kafka-templates.ts";
import { createScratch } from "./scratch.ts";

export type { Right } from "./kafka-acls.ts";

export type SecureKafkaOptions = {
  /** Names and passwords for PLAIN and SCRAM. Default: relay with relay-secret. */
  readonly users?: Readonly<Record<string, string>>;
  readonly properties?: KafkaProperties;
};

/** A private Kafka that lets in only who can prove a name, and lets that one do only what it has a right to. */
export type SecureKafka = KafkaProcess & {
  /** TLS, and SASL by PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER (unsigned tokens: see `unsignedToken`). */
  readonly saslBrokers: string;
  /** TLS with a certificate of the client; its principal is "User:CN=relay". */
  readonly mutualTlsBrokers: string;
  /** Neither, and every right: for administration and for readers that judge. */
  readonly directBrokers: string;
  readonly certificates: Certificates;
  createTopic(name: string, options?: TopicOptions): Promise<void>;
  deleteTopic(name: string): Promise<void>;
  /** In force when the promise resolves. `principal` is "User:relay", or "User:CN=relay" of a certificate. */
  allow(principal: string, rights: readonly Right[]): Promise<void>;
  revoke(principal: string, rights: readonly Right[]): Promise<void>;
};

export async function startSecureKafka(options: SecureKafkaOptions = {}): Promise<SecureKafka> {
  const users = options.users ?? { relay: "relay-secret" };
  const scratch = createScratch("kafka-tls", "memory");
  const certificates = await createCertificates(scratch.path);
  const [saslPort, tlsPort, directPort, controllerPort] = await Promise.all([
    freePort(),
    freePort(),
    freePort(),
    freePort(),
  ]);
  const addresses = `SASL://127.0.0.1:${saslPort},MUTUAL://127.0.0.1:${tlsPort},DIRECT://127.0.0.1:${directPort}`;
  const node = await spawnKafka({
    nodeId: 1,
    formatArguments: Object.entries(users).flatMap(([name, password]) => scramArguments(name, password)),
    properties: {
      "process.roles": "broker,controller",
      "controller.quorum.voters": `1@127.0.0.1:${controllerPort}`,
      listeners: `${addresses},CONTROLLER://127.0.0.1:${controllerPort}`,
      "advertised.listeners": addresses,
      "listener.security.protocol.map": "SASL:SASL_SSL,MUTUAL:SSL,DIRECT:PLAINTEXT,CONTROLLER:PLAINTEXT",
      "inter.broker.listener.name": "DIRECT",
      "controller.listener.names": "CONTROLLER",
      ...singleNodeProperties,
      ...tlsProperties(scratch.path, certificates),
      ...saslProperties(users),
      "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
      // Nameless are only those who come by DIRECT or CONTROLLER.
      "super.users": "User:ANONYMOUS",
      ...options.properties,
    },
  });
  const owned = new AsyncDisposableStack();
  owned.defer(() => scratch.remove());
  owned.use(node);
  try {
    await node.ready();
  } catch (error) {
    await owned.disposeAsync();
    throw error;
  }
  const directBrokers = `127.0.0.1:${directPort}`;
  return {
    folder: node.folder,
    get pid() {
      return node.pid;
    },
    get isRunning() {
      return node.isRunning;
    },
    kill: () => node.kill(),
    stop: () => node.stop(),
    restart: () => node.restart(),
    pause: () => node.pause(),
    resume: () => node.resume(),
    logTail: () => node.logTail(),
    saslBrokers: `127.0.0.1:${saslPort}`,
    mutualTlsBrokers: `127.0.0.1:${tlsPort}`,
    directBrokers,
    certificates,
    createTopic: (name, topic) => withAdmin(directBrokers, (admin) => createTopic(admin, name, topic)),
    deleteTopic: (name) => withAdmin(directBrokers, (admin) => deleteTopic(admin, name)),
    allow: (principal, rights) => withAdmin(directBrokers, (admin) => allow(admin, principal, rights)),
    revoke: (principal, rights) => withAdmin(directBrokers, (admin) => revoke(admin, principal, rights)),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** What an authorization server would hand out, but unsigned. With a lifetime below zero it has expired already. */
export function unsignedToken(subject: string, lifetimeS = 3_600): string {
  const nowS = Math.floor(Date.now() / 1_000);
  const claims = { sub: subject, iat: nowS - 60, exp: nowS + lifetimeS };
  const parts = [{ alg: "none" }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"));
  return `${parts.join(".")}.`;
}

function scramArguments(name: string, password: string): string[] {
  return ["SCRAM-SHA-256", "SCRAM-SHA-512"].flatMap((mechanism) => [
    "--add-scram",
    `${mechanism}=[name=${name},password=${password}]`,
  ]);
}

/** Kafka wants the server's key and certificate in one file. */
function tlsProperties(folder: string, { authority, server }: Certificates): KafkaProperties {
  const keystore = join(folder, "server.pem");
  writeFileSync(keystore, readFileSync(server.keyFile, "utf8") + server.certificate);
  return {
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": keystore,
    "ssl.truststore.type": "PEM",
    "ssl.truststore.location": authority.certificateFile,
    "listener.name.mutual.ssl.client.auth": "required",
  };
}

function saslProperties(users: Readonly<Record<string, string>>): KafkaProperties {
  const modules = "org.apache.kafka.common.security";
  const plainUsers = Object.entries(users).map(([name, password]) => `user_${name}="${password}"`);
  const scram = `${modules}.scram.ScramLoginModule required;`;
  return {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
    "listener.name.sasl.plain.sasl.jaas.config": `${modules}.plain.PlainLoginModule required ${plainUsers.join(" ")};`,
    "listener.name.sasl.scram-sha-256.sasl.jaas.config": scram,
    "listener.name.sasl.scram-sha-512.sasl.jaas.config": scram,
    "listener.name.sasl.oauthbearer.sasl.jaas.config": `${modules}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";`,
  };
}
