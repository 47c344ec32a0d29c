import assert from "node:assert/strict";
import { test } from "node:test";
import { consoleFiles } from "./console-files.ts";
import { consoleRoutes } from "./routes/console-routes.ts";

const SCRIPT_BYTES_MAX = 72 * 1024;

const [page, file] = consoleRoutes(() => null);

async function ask(name: string | null, headers: Record<string, string> = {}) {
  const { signal } = new AbortController();
  const identity = { name: "nobody", role: "viewer", maySeePayloads: false, via: "api" } as const;
  const route = name === null ? page : file;
  const answer = await route?.handle({
    params: { file: name },
    query: {},
    body: {},
    headers,
    address: "127.0.0.1",
    foreign: null,
    identity,
    signal,
  });
  assert.ok(answer);
  return { ...answer, text: String(answer.body), headers: answer.headers ?? {} };
}

async function scriptName(): Promise<string> {
  const { text } = await ask(null);
  return /src="console\/([^"]+\.js)"/.exec(text)?.[1] ?? "";
}

test("G4 all scripts of the console together stay under 72 KB compressed", async () => {
  const scripts = [...(await consoleFiles())].filter(([name]) => name.endsWith(".js"));
  const sizes = scripts.map(([name, { forms }]) => `${name} ${forms.gzip.length}`);
  const total = scripts.reduce((sum, [, { forms }]) => sum + forms.gzip.length, 0);
  assert.ok(scripts.length > 0 && total < SCRIPT_BYTES_MAX, `${total} bytes: ${sizes.join(", ")}`);
});

test("G4 the page loads only its own files, by relative links, and has no inline script or style", async () => {
  const { text } = await ask(null);
  assert.doesNotMatch(text, /<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=/);
  const links = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link]) => link ?? "");
  assert.equal(links.length, 3);
  const files = await consoleFiles();
  for (const link of links) assert.ok(files.has(link.replace(/^console\//, "")), link);
});

test("G4 files are compressed; browsers cache those with a hash in their name and revalidate the page", async () => {
  const name = await scriptName();
  const plain = await ask(name);
  assert.equal(plain.contentType, "text/javascript; charset=utf-8");
  assert.match(String(plain.headers["cache-control"]), /immutable/);
  for (const form of ["br", "gzip"]) {
    const { headers, body } = await ask(name, { "accept-encoding": form });
    assert.equal(headers["content-encoding"], form);
    assert.ok((body as Buffer).length < plain.text.length / 2);
  }
  const { headers } = await ask(null);
  assert.equal(headers["cache-control"], "no-cache");
  const again = await ask(null, { "if-none-match": String(headers.etag) });
  assert.deepEqual([again.status, again.body], [304, null]);
});

test("G4 only the files of the console are served", async () => {
  for (const name of ["index.html", "nothing.js", "../package.json", "..%2fpackage.json", "", "__proto__"]) {
    await assert.rejects(ask(name), { status: 404 }, name);
  }
});
