import assert from "node:assert/strict";
import { test } from "node:test";
import { secretsInAddress, secretsInValue, shownAddress } from "./address-secrets.ts";

const cases: readonly (readonly [address: string, shown: string, secrets: readonly string[]])[] = [
  ["postgres://me:p%40ss@db/shop?sslmode=require", "postgres://me:***@db/shop?sslmode=require", ["p%40ss", "p@ss"]],
  ["postgres://db/shop?user=me&password=hunter2", "postgres://db/shop?user=me&password=***", ["hunter2"]],
  ["postgres://relay@db/shop", "postgres://relay@db/shop", []],
  ["postgres://me:a/b@db/shop", "postgres://***", ["postgres://me:a/b@db/shop"]],
  ["postgres://me:a@b@db/shop", "postgres://me:***@db/shop", ["a@b"]],
  ["Password=hunter2;Database=shop", "***", ["Password=hunter2;Database=shop"]],
  ["redis://:hunter2@h:6379/0", "redis://:***@h:6379/0", ["hunter2"]],
  ["nats://s3cret-token@h:4222?stream=S", "nats://***@h:4222?stream=S", ["s3cret-token"]],
  ["https://sk_live_1:@h/x", "https://***:***@h/***", ["sk_live_1"]],
  ["https://hooks.example/services/T0AAAAAAA/x9", "https://hooks.example/***", ["T0AAAAAAA"]],
  ["https://h/in?token=abcd&v=1&x", "https://h/***?token=***&v=***&***", ["abcd"]],
  ["https://h/{header:tenant}/orders", "https://h/***", []],
  ["https://{header:host}:8443/x", "https://{header:host}:8443/***", []],
  ["https://me:a/b@h/x", "https://***", ["https://me:a/b@h/x"]],
  ["http://[::1]:8080/", "http://[::1]:8080/", []],
  ["https://h/", "https://h/", []],
  ["http://h:3100", "http://h:3100", []],
  ["amqp://h/vhost?exchange=events", "amqp://h/vhost?exchange=events", []],
  ["a:9092,b:9092", "a:9092,b:9092", []],
  ["stdout:", "stdout:", []],
];

test("H1 A20 an address is shown without password, token, secret parameter or a webhook's path", () => {
  for (const [address, shown, secrets] of cases) {
    assert.equal(shownAddress(address), shown, address);
    assert.deepEqual(secretsInAddress(address), secrets, address);
  }
});

test("H1 A20 each value of headers and lists is a secret by itself, and so is the credential after Bearer or Basic", () => {
  const basic = Buffer.from("me:hunter2").toString("base64");
  const headers = {
    authorization: `Basic ${basic}`,
    "x-api-key": "k3y!",
    "content-type": "text/plain",
    "x-on": "true",
  };
  assert.deepEqual(secretsInValue(headers), [`Basic ${basic}`, basic, "hunter2", basic, "k3y!"]);
  assert.deepEqual(secretsInValue(["Bearer abc"]), ["Bearer abc", "abc"]);
  assert.deepEqual(secretsInValue("me:hunter2"), ["me:hunter2", "hunter2", basic]);
});
