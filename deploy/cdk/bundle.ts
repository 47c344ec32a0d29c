import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";
import type { RelayEntry } from "./relay-entries.ts";

/** A relay whose function is one file. */
export interface BundledRelay extends RelayEntry {
  /** The folder that holds `index.mjs` and nothing else. */
  readonly code: string;
  readonly bytes: number;
}

/** Clients are loaded by the kind of the target's address, so those of all other kinds are never asked for. */
export const CLIENTS: Readonly<Record<string, readonly string[]>> = {
  kafka: ["@platformatic/kafka"],
  http: [],
  https: [],
  amqp: ["amqplib"],
  amqps: ["amqplib"],
  nats: ["@nats-io/transport-node"],
  tls: ["@nats-io/transport-node"],
  redis: ["ioredis"],
  rediss: ["ioredis"],
  "bullmq+redis": ["bullmq", "ioredis"],
  "bullmq+rediss": ["bullmq", "ioredis"],
  sqs: ["@aws-sdk/client-sqs"],
  stdout: [],
  discard: [],
};

/** What no function asks for, though a part of it could. */
const OTHERS = ["@aws-sdk/client-dynamodb-streams", "@opentelemetry/*"];

/** Packages that were written for `require` ask for it at run time, and a module has none by itself. */
const REQUIRE = 'import{createRequire as __makeRequire}from"node:module";const require=__makeRequire(import.meta.url);';

/** Each entry file with all that it needs as one file below the folder, the SDK in its tested version included. */
export async function bundled(relays: readonly RelayEntry[], folder: string): Promise<readonly BundledRelay[]> {
  return await Promise.all(relays.map((relay) => bundledRelay(relay, join(folder, relay.name))));
}

async function bundledRelay(relay: RelayEntry, code: string): Promise<BundledRelay> {
  const needed = CLIENTS[relay.scheme];
  if (needed === undefined) {
    const known = Object.keys(CLIENTS).join(", ");
    throw new Error(`The target of ${relay.name} begins with ${relay.scheme}: known are ${known}`);
  }
  const { metafile } = await build({
    entryPoints: [relay.entry],
    outfile: join(code, "index.mjs"),
    bundle: true,
    minify: true,
    // Names of classes are shown in errors, and some clients look at them.
    keepNames: true,
    platform: "node",
    format: "esm",
    target: "node24",
    banner: { js: REQUIRE },
    external: [...OTHERS, ...Object.values(CLIENTS).flat()].filter((client) => !needed.includes(client)),
    plugins: [filesInside],
    metafile: true,
    logLevel: "error",
  });
  const [{ bytes } = { bytes: 0 }] = Object.values(metafile.outputs);
  return { ...relay, code, bytes };
}

const READ_BESIDE = /readFileSync\(new URL\((['"])([^'"]+)\1, import\.meta\.url\)\)/g;

/** What a client reads from a file beside its own, such as WebAssembly, would not be beside the bundle. */
const filesInside: Plugin = {
  name: "files-inside",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]node_modules[\\/].*\.m?js$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const contents = text.replace(READ_BESIDE, (_, __, file: string) => {
        const base64 = readFileSync(new URL(file, pathToFileURL(path))).toString("base64");
        return `Buffer.from("${base64}", "base64")`;
      });
      return contents === text ? null : { contents, loader: "js" };
    });
  },
};
