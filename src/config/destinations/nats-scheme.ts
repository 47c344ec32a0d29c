import { type NatsPublisherOptions, type NatsTls, streamFault } from "../../publishers/nats/nats-config.ts";
import { publishMsOf } from "../lease-timing.ts";
import type { Settings } from "../settings/settings.ts";
import { type Address, parseAddress } from "./address.ts";
import { type DestinationScheme, refuseExactlyOnce, type WrittenDestination } from "./destination-scheme.ts";

/** NATS JetStream, from `nats://` addresses. */
export const natsScheme: DestinationScheme = {
  kind: "nats",
  schemes: ["nats", "tls"],
  example: "nats://host:port?stream=NAME",
  configure(written) {
    refuseExactlyOnce(written, "NATS");
    const address = parseAddress(written, { defaultPort: 4_222, parameters: ["stream"] });
    if (address === null) return null;
    const options = natsOptions(written, address);
    if (options === null) return null;
    return {
      kind: "nats",
      name: written.name,
      addresses: address.hosts,
      isExactlyOnce: false,
      warnings: warningsOf(written.settings, options),
      options,
      async open() {
        const { loadNats } = await import("../../publishers/nats/nats-client.ts");
        await loadNats();
        const { natsPublisher } = await import("../../publishers/nats/nats-publisher.ts");
        return natsPublisher(options);
      },
      topicFix: "nats stream add NAME --subjects '{topic}'   # or nats stream edit",
      async missingTopics(topics) {
        const { missingSubjects } = await import("../../publishers/nats/nats-topic-check.ts");
        return await missingSubjects(options, topics);
      },
    };
  },
};

/** Null when `problems` say what is wrong. */
function natsOptions(written: WrittenDestination, address: Address): NatsPublisherOptions | null {
  const { name, problems, setting, settings } = written;
  const before = problems.length;
  const stream = address.parameters.get("stream");
  const fault = stream === undefined ? null : streamFault(stream);
  if (fault !== null) problems.push(`${setting} has the parameter stream: ${fault}`);
  if (address.path !== "") {
    problems.push(`${setting} has a path, which NATS does not support: write nats://host:port?stream=NAME`);
  }
  const login = loginOf(address, settings, problems);
  const tls = tlsOf(address, settings, problems);
  if (problems.length > before) return null;
  const publishMs = publishMsOf(settings);
  return {
    name,
    servers: address.hosts,
    service: settings.SERVICE_NAME,
    ...(stream === undefined ? {} : { stream }),
    ...login,
    ...(tls === null ? {} : { tls }),
    connectTimeoutMs: Math.round(publishMs * 0.6),
    sendTimeoutMs: Math.round(publishMs * 0.6),
  };
}

type Login = Pick<NatsPublisherOptions, "user" | "password" | "token" | "credentials">;

/** By NATS convention, a user without a password in the address is a token. */
function loginOf({ password, username }: Address, settings: Settings, problems: string[]): Login {
  const { NATS_CREDENTIALS, NATS_PASSWORD, NATS_TOKEN, NATS_USER } = settings;
  if (NATS_PASSWORD !== undefined && NATS_USER === undefined) {
    problems.push("NATS_PASSWORD is set but NATS_USER is not: set both or neither");
  }
  const logins: Login[] = [];
  if (username !== null) logins.push(password === null ? { token: username } : { user: username, password });
  if (NATS_USER !== undefined) logins.push({ user: NATS_USER, password: NATS_PASSWORD ?? "" });
  if (NATS_TOKEN !== undefined) logins.push({ token: NATS_TOKEN });
  if (NATS_CREDENTIALS !== undefined) logins.push({ credentials: NATS_CREDENTIALS });
  if (logins.length > 1) {
    problems.push(
      "Several logins for NATS are set: keep one of the address's, NATS_USER, NATS_TOKEN and NATS_CREDENTIALS",
    );
  }
  if (NATS_CREDENTIALS !== undefined && !/BEGIN NATS USER JWT/.test(NATS_CREDENTIALS)) {
    problems.push("NATS_CREDENTIALS is not the text of a credentials file: it must contain BEGIN NATS USER JWT");
  }
  return logins[0] ?? {};
}

function tlsOf({ scheme }: Address, settings: Settings, problems: string[]): true | NatsTls | null {
  const { NATS_TLS_CA: ca, NATS_TLS_CERT: cert, NATS_TLS_KEY: key } = settings;
  if ((cert === undefined) !== (key === undefined)) {
    problems.push("NATS_TLS_CERT and NATS_TLS_KEY only work together: set both or neither");
  }
  const given = Object.entries({ ca, cert, key }).filter(([, value]) => value !== undefined);
  if (given.length > 0) return Object.fromEntries(given) as NatsTls;
  return scheme === "tls" ? true : null;
}

function warningsOf(
  { TOPICS_CREATE }: Settings,
  { credentials, password, tls, token }: NatsPublisherOptions,
): string[] {
  const warnings: string[] = [];
  if ((password ?? token) !== undefined && credentials === undefined && tls === undefined) {
    warnings.push("The login can go to NATS unencrypted: write tls:// instead of nats://");
  }
  if (TOPICS_CREATE === true) warnings.push("TOPICS_CREATE has no effect with NATS: create streams yourself");
  return warnings;
}
