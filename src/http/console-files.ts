import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { reasonOf } from "../core/errors.ts";

/** One file of the console, in each encoding that browsers accept. */
export interface ConsoleFile {
  readonly contentType: string;
  readonly etag: string;
  /** Its name contains a hash of its content. */
  readonly isImmutable: boolean;
  readonly forms: Readonly<Record<"br" | "gzip" | "identity", Buffer>>;
}

type ConsoleFiles = ReadonlyMap<string, ConsoleFile>;

interface PlainFile {
  readonly name: string;
  readonly body: Uint8Array;
}

const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};
const HASHED = /-[0-9A-Za-z]{8}\.\w+$/;
/** Nearly as small as at the highest quality, in a tenth of the time. */
const BROTLI_QUALITY = 9;

const BUILT = join(import.meta.dirname, "../console");
const SOURCES = new URL("../../console/build.ts", import.meta.url);

let loading: Promise<ConsoleFiles> | null = null;

/**
 * Reads the files, or bundles them from the sources, once at the first request. Throws an Error that says what is
 * missing.
 */
export function consoleFiles(): Promise<ConsoleFiles> {
  loading ??= load().catch((error: unknown) => {
    loading = null;
    throw error;
  });
  return loading;
}

async function load(): Promise<ConsoleFiles> {
  const plain = import.meta.filename.endsWith(".ts") ? await bundled() : await built();
  const files = await Promise.all(plain.map(async ({ name, body }) => [name, await prepared(name, body)] as const));
  return new Map(files);
}

async function built(): Promise<readonly PlainFile[]> {
  const names = await readdir(BUILT).catch((error: unknown) => {
    throw new Error(`The console was not built: ${reasonOf(error)}. Run npm run build.`);
  });
  return await Promise.all(names.map(async (name) => ({ name, body: await readFile(join(BUILT, name)) })));
}

/** A checkout has the sources and the bundler; the published package contains the bundle instead. */
async function bundled(): Promise<readonly PlainFile[]> {
  try {
    const build = (await import(SOURCES.href)) as { bundleConsole(): Promise<readonly PlainFile[]> };
    return await build.bundleConsole();
  } catch (error) {
    throw new Error(`The console cannot be bundled: ${reasonOf(error)}. Run npm install, then restart the service.`);
  }
}

async function prepared(name: string, bytes: Uint8Array): Promise<ConsoleFile> {
  const body = Buffer.from(bytes);
  const params = { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY };
  const [br, zipped] = await Promise.all([
    promisify(brotliCompress)(body, { params }),
    promisify(gzip)(body, { level: constants.Z_BEST_COMPRESSION }),
  ]);
  return {
    contentType: TYPES[name.split(".").at(-1) ?? ""] ?? "application/octet-stream",
    etag: `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`,
    isImmutable: HASHED.test(name),
    forms: { br, gzip: zipped, identity: body },
  };
}
