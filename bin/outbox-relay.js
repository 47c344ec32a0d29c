#!/usr/bin/env node
// Plain JavaScript of any age, so that an old Node can still say what it lacks.
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 22)) {
  console.error(`outbox-relay: Node ${process.versions.node} is too old, 22.22 or later is needed.`);
  process.exit(2);
}

const { existsSync } = await import("node:fs");
// A clone runs its sources as they are, so that it never runs an old build; the published package holds only the build.
const sources = new URL("../src/cli/outbox-relay.ts", import.meta.url);
await import(existsSync(sources) ? sources.href : new URL("../dist/cli/outbox-relay.js", import.meta.url).href);
