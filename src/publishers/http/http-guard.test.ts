import assert from "node:assert/strict";
import type { LookupFunction } from "node:net";
import { test } from "node:test";
import { checkHost, ForbiddenHost, guardedLookup } from "./http-guard.ts";

const strict = { allowPrivate: false, allowedHosts: null };

/** As the address of an event would have it. */
function check(host: string, options: Parameters<typeof checkHost>[1] = strict): void {
  checkHost(new URL(`http://${host}/`).hostname, options);
}

test("A20 private, loopback, link-local and reserved addresses are refused in every spelling", () => {
  for (const host of [
    ...["127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0", "0.0.0.0", "10.1.2.3", "172.16.0.1"],
    ...["192.168.1.1", "169.254.169.254", "0xa9fea9fe", "100.64.0.1", "224.0.0.1", "255.255.255.255", "198.18.0.1"],
    ...["[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "[::127.0.0.1]", "[64:ff9b::10.0.0.1]"],
    ...["[fd00::1]", "[fe80::1]", "[ff02::1]", "[2002:7f00:1::]", "[2001:db8::1]"],
  ]) {
    assert.throws(() => check(host), ForbiddenHost, host);
  }
  for (const host of [
    "93.184.215.14",
    "[2606:2800::1]",
    "[64:ff9b::5db8:d70e]",
    "[::ffff:93.184.215.14]",
    "example.org",
  ]) {
    assert.doesNotThrow(() => check(host), host);
  }
});

test("A20 private ones can be allowed, the place where clouds hand out credentials cannot", () => {
  const allowing = { allowPrivate: true, allowedHosts: null };
  for (const host of ["127.0.0.1", "10.0.0.1", "[::1]", "[fd00::1]"])
    assert.doesNotThrow(() => check(host, allowing), host);
  for (const host of ["169.254.169.254", "0.0.0.0", "[fe80::1]", "[::ffff:169.254.169.254]"]) {
    assert.throws(() => check(host, allowing), ForbiddenHost, host);
  }
});

test("A20 only hosts of the list can be named", () => {
  const listed = { allowPrivate: false, allowedHosts: ["hooks.example.org", "*.partner.example"] };
  for (const host of ["hooks.example.org", "HOOKS.example.org", "a.b.partner.example", "hooks.example.org."]) {
    assert.doesNotThrow(() => check(host, listed), host);
  }
  for (const host of ["example.org", "partner.example", "evilpartner.example", "hooks.example.org.evil.example"]) {
    assert.throws(() => check(host, listed), /HTTP_ALLOWED_HOSTS/, host);
  }
});

/** What a connection would get of a name with these addresses. */
function found(addresses: readonly string[], all: boolean): Promise<unknown> {
  const lookup = ((_host, _options, callback) => {
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    );
  }) as LookupFunction;
  return new Promise((resolve) => {
    guardedLookup(false, lookup)("name.example", { all }, (error, address) => resolve(error ?? address));
  });
}

test("A20 a name is refused when any of its addresses is, and the connection gets the checked ones", async () => {
  assert.ok((await found(["93.184.215.14", "169.254.169.254"], true)) instanceof ForbiddenHost);
  assert.ok((await found(["fe80::1%eth0"], false)) instanceof ForbiddenHost);
  assert.deepEqual(await found(["93.184.215.14"], true), [{ address: "93.184.215.14", family: 4 }]);
  assert.equal(await found(["93.184.215.14"], false), "93.184.215.14");
  assert.match(String(await found([], false)), /has no address/);
});
