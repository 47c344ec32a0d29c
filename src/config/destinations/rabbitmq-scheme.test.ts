import assert from "node:assert/strict";
import { test } from "node:test";
import { readSettings } from "../reading/read-settings.ts";
import { destinationConfig } from "./destination-config.ts";

function configOf(env: Record<string, string>) {
  const problems: string[] = [];
  const config = destinationConfig(readSettings({ env }).settings, problems);
  return { config, problems, options: config?.options as Record<string, unknown> | undefined };
}

test("G2 an address has host, login and exchange", () => {
  const { config, options, problems } = configOf({
    OUTBOX_DESTINATION:
      "amqps://me:p%40ss@one,two:5000/my%2Fhost?exchange=e&declare=true&queue=q&heartbeat=9&connectTimeout=2s",
  });
  assert.deepEqual([problems, config?.kind, config?.name], [[], "rabbitmq", "rabbitmq"]);
  assert.deepEqual(options, {
    name: "rabbitmq",
    hosts: ["one:5671", "two:5000"],
    exchange: "e",
    vhost: "my/host",
    declare: true,
    tls: true,
    queue: "q",
    username: "me",
    password: "p@ss",
    heartbeatSeconds: 9,
    connectTimeoutMs: 2_000,
    connectionName: "outbox-relay",
  });
});

test("C1 the worker's variables alone name the destination", () => {
  const env = { RabbitMq__HostName: "rabbit", RabbitMq__ExchangeName: "waiting_room_events" };
  assert.deepEqual(configOf(env).config?.addresses, ["rabbit:5672"]);
  const more = { RabbitMq__Port: "5673", RabbitMq__UserName: "u", RabbitMq__Password: "p", RabbitMq__VirtualHost: "v" };
  const { config, options } = configOf({ ...env, ...more });
  assert.deepEqual(config?.addresses, ["rabbit:5673"]);
  assert.deepEqual([options?.username, options?.password, options?.vhost], ["u", "p", "v"]);
  assert.match(config?.warnings.join() ?? "", /unencrypted/);
});

test("G2 invalid settings are reported with the fix, without a password", () => {
  const at = (rest: string) => ({ OUTBOX_DESTINATION: `amqp://u:canary@h/${rest}` });
  const cases: readonly (readonly [Record<string, string>, RegExp])[] = [
    [at(""), /names no exchange: add \?exchange=NAME/],
    [at("?exchange=e&queue=q"), /only works with declare=true/],
    [at("?exchange=e&declare=maybe"), /declare=maybe: write true or false/],
    [at("?exchange=e&heartbeat=x"), /heartbeat=x: write a number of seconds/],
    [at("?exchange=e&exchnage=f"), /did you mean exchange/],
    [at(`?exchange=${"x".repeat(256)}`), /exchange of more than 255 bytes/],
    [{ OUTBOX_DESTINATION: "amqp://u@h/?exchange=e" }, /a user but no password/],
    [{ ...at("?exchange=e"), DELIVERY: "exactly-once" }, /RabbitMQ does not support it/],
    [{ ...at("?exchange=e"), RABBITMQ_HOST: "other" }, /name different destinations/],
    [{ KAFKA_BROKERS: "k:1", RABBITMQ_HOST: "r" }, /name different destinations/],
    [{ RABBITMQ_HOST: "a b", RABBITMQ_EXCHANGE: "e" }, /is not a host name/],
    [{ ...at("?exchange=e"), RABBITMQ_SSL_CA: PEM }, /Certificates for RabbitMQ.*amqps:/],
  ];
  for (const [env, expected] of cases) {
    const text = configOf(env).problems.join("\n");
    assert.match(text, expected);
    assert.doesNotMatch(text, /canary/);
  }
});

const PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----";
