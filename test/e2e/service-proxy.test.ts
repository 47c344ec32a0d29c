import assert from "node:assert/strict";
import { test } from "node:test";
import { freePort } from "../servers/free-port.ts";
import { startNginx } from "../servers/nginx.ts";
import { visit } from "./http-visitor.ts";
import { startService } from "./service-process.ts";

/** Nothing is asked of the database: it need not be there. */
async function startBare(env: Readonly<Record<string, string>> = {}) {
  const port = await freePort();
  const service = startService(["run"], {
    DATABASE_URL: `postgres://relay@127.0.0.1:${await freePort()}/shop`,
    OUTBOX_SCHEMAS: "orders",
    OUTBOX_DESTINATION: "stdout:",
    PORT: String(port),
    ...env,
  });
  await service.logged("who may use it", ({ message }) => String(message).startsWith("API and console"));
  return { service, port, direct: `http://127.0.0.1:${port}` };
}

const CONFIG = "/api/v1/config";
const asRoot = process.getuid?.() === 0;

test("H1 G4 nginx with a bare proxy_pass on the same machine makes nobody an administrator", async () => {
  const { direct, port, service } = await startBare();
  await using _ = service;
  assert.equal((await visit(`${direct}${CONFIG}`)).status, 200, "straight from this machine it is open");
  // Of the same account, with what nginx sends by default: HTTP/1.0 and the upstream's own name as Host.
  await using bare = await startNginx({ upstreamPort: port, user: "root" });
  // Of its own account, with what newer ones send by default: nothing in the request tells that there is a proxy.
  await using modern = await startNginx({
    upstreamPort: port,
    location: 'proxy_http_version 1.1; proxy_set_header Connection "";',
  });
  for (const [proxy, why] of [[bare, /HTTP\/1\.0/], ...(asRoot ? [[modern, /another user/] as const] : [])] as const) {
    const answer = await visit(`${proxy.url}${CONFIG}`);
    assert.deepEqual([answer.status, answer.code], [403, "API_OFF"], answer.body);
    assert.match(answer.body, why);
    const pause = await visit(`${proxy.url}/api/v1/pipelines/x/pause`, { method: "POST", body: {} });
    assert.equal(pause.code, "API_OFF");
    assert.equal((await visit(`${proxy.url}/`)).status, 403, "the console is off as well");
    assert.equal((JSON.parse((await visit(`${proxy.url}/api/v1/session`)).body) as { access: string }).access, "off");
    assert.equal((await visit(`${proxy.url}/livez`)).status, 200, "probes stay open");
    await service.logged(
      "why",
      ({ message, reason }) => /API and console are off/.test(`${message}`) && why.test(`${reason}`),
    );
  }
  for (const header of ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via", "X-Forwarded-Prefix"]) {
    assert.equal((await visit(`${direct}${CONFIG}`, { headers: { [header]: "192.0.2.1" } })).code, "API_OFF", header);
  }
  assert.equal((await visit(`${direct}${CONFIG}`)).status, 200, "this machine itself is still let in");
});

test("H1 G4 PUBLIC_URL without a token turns API and console off, and a token lets proxied requests in", async () => {
  const PUBLIC_URL = "https://relay.example.org";
  const { direct, service } = await startBare({ PUBLIC_URL });
  await using _ = service;
  await service.logged("why", ({ message }) => /are off: PUBLIC_URL is set.* ADMIN_TOKEN/.test(String(message)));
  assert.equal((await visit(`${direct}${CONFIG}`)).code, "API_OFF");
  const ADMIN_TOKEN = "admin-token-of-sixteen";
  const { port, service: guarded } = await startBare({ PUBLIC_URL, ADMIN_TOKEN });
  await using __ = guarded;
  await using nginx = await startNginx({ upstreamPort: port });
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  assert.equal((await visit(`${nginx.url}${CONFIG}`, { headers })).status, 200);
});
