import assert from "node:assert/strict";
import { test } from "node:test";
import { isRelayError } from "../../core/errors.ts";
import { kurrentdbAddress } from "./kurrentdb-address.ts";

test("E1 an address becomes one that the client takes, with pings that notice a frozen server within 15 s", () => {
  const { connectionString, secrets, shown } = kurrentdbAddress("esdb://admin:pa%24s@a:2113,b?tls=true");
  assert.equal(
    connectionString,
    "kurrentdb://admin:pa%24s@a:2113,b?keepAliveInterval=10000&keepAliveTimeout=5000&tls=true",
  );
  assert.equal(shown, "kurrentdb://a:2113,b");
  assert.deepEqual(secrets, ["pa$s", "pa%24s"]);
  assert.match(
    kurrentdbAddress("kurrentdb+discover://cluster.example?KeepAliveInterval=20000").connectionString,
    /^kurrentdb\+discover:\/\/cluster\.example\?keepAliveInterval=20000&/,
  );
  const open = kurrentdbAddress("kurrentdb://admin:hunter2@a?tls=false");
  assert.doesNotMatch(open.connectionString, /hunter2/, "no password is sent without TLS");
  assert.deepEqual([open.credentials, open.secrets], [null, ["hunter2", "hunter2"]]);
  const given = kurrentdbAddress("kurrentdb://old:secret@a", { username: "new", password: "p@ss:word" });
  assert.match(given.connectionString, /^kurrentdb:\/\/new:p%40ss%3Aword@a\?/);
});

test("E1 an address that is none is CONFIG_INVALID, and its password is not shown", () => {
  const wrong = [
    ...[
      "",
      "postgres://a",
      "kurrentdb://",
      "kurrentdb://user:hunter2",
      "kurrentdb://user:hunter2@",
      "kurrentdb://hunter2@a",
    ],
    ...[
      "kurrentdb://u:p@hunter2@a",
      "kurrentdb://u:hunter2/x@a",
      "kurrentdb://u:hunter2%zz@a",
      "kurrentdb://u:a:hunter2@b",
    ],
    ...["kurrentdb://u:hunter2@a?tsl=true", "kurrentdb://u:hunter2@a?tls=", "kurrentdb://u:hunter2@a:port"],
    "kurrentdb://u:hunter2@a?nodePreference=follower",
  ];
  for (const url of wrong) {
    assert.throws(
      () => kurrentdbAddress(url),
      (error) => isRelayError(error, "CONFIG_INVALID") && !error.message.includes("hunter2"),
      url,
    );
  }
});
