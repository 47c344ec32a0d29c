import { isBuiltin } from "node:module";
import type { Module } from "./module.ts";
import { isTestFile, type Manifest, manifestPathFor, type Offence, type Repository } from "./repository.ts";

const lower = ["core", "ports"];
const middle = [
  ...["postgres", "dynamodb", "sources", "publishers", "relay", "routing", "telemetry", "outbox", "inbox"],
  ...["requests", "worker"],
];

/** What each folder of src/ may import besides itself. Adapters count by their own folder, not by `sources`. */
const layers: Readonly<Record<string, readonly string[] | "everything">> = {
  core: [],
  ports: ["core"],
  postgres: lower,
  dynamodb: [...lower, "outbox"],
  // Only names are shared with adapters: of streams, keys and jobs.
  requests: lower,
  sources: [...lower, "postgres"],
  publishers: [...lower, "requests"],
  relay: [...lower, "routing"],
  routing: lower,
  telemetry: [...lower, "postgres", "requests"],
  outbox: [...lower, "postgres"],
  inbox: [...lower, "postgres"],
  worker: [...lower, "requests"],
  // A frame around both sides; of the engine it knows the face alone.
  nestjs: [...lower, "postgres", "outbox", "relay"],
  // Of the service it knows the HTTP API alone.
  client: [],
  // The same face over the same handlers, without a server between.
  "in-process": [...lower, ...middle, "operations", "http", "client"],
  operations: [...lower, ...middle],
  config: [...lower, ...middle],
  testing: [...lower, ...middle],
  lambda: [...lower, ...middle, "config"],
  "dynamodb-runner": [...lower, ...middle, "config", "lambda"],
  // The daemon knows nothing of the command line that starts it.
  service: [...lower, ...middle, "operations", "config", "lambda", "dynamodb-runner", "http"],
  dev: "everything",
  cli: "everything",
  http: [...lower, ...middle, "operations", "config"],
  "http-destination.ts": "everything",
  "index.ts": "everything",
  "kafka.ts": "everything",
  "bullmq.ts": "everything",
  "redis.ts": "everything",
  "redis-outbox.ts": "everything",
  "nats.ts": "everything",
  "sqs.ts": "everything",
  "kurrentdb.ts": "everything",
  "request-worker.ts": "everything",
  "lambda.ts": "everything",
  "dynamodb-outbox.ts": "everything",
  "rabbitmq.ts": "everything",
};

export function wrongImports(repository: Repository): Offence[] {
  const offences: Offence[] = [];
  for (const module of repository.modules().filter(({ path }) => path.startsWith("src/"))) {
    const layer = layerOf(module.path);
    if (!(layer in layers)) {
      offences.push({ file: module.path, line: 1, what: `${layer} is no layer of src/` });
      continue;
    }
    for (const { target, line } of module.imports) {
      if (target === undefined || mayImport(module.path, target)) continue;
      offences.push({ file: module.path, line, what: `${layer} may not import ${target}` });
    }
  }
  return offences;
}

/** In a checkout the console is bundled at its first request; what ships holds the bundle instead. */
const bundler = { from: "src/http/console-files.ts", target: "console/build.ts" } as const;

function mayImport(from: string, target: string): boolean {
  if (from === bundler.from && target === bundler.target) return true;
  if (!target.startsWith("src/")) return isTestFile(from) && target.startsWith("test/servers/");
  if (isTestFile(from) || unitOf(from) === unitOf(target)) return true;
  const allowed = layers[layerOf(from)] ?? [];
  return allowed === "everything" || allowed.includes(layerOf(target));
}

function layerOf(path: string): string {
  return path.split("/")[1] ?? "";
}

/** The folder inside which imports are free: an adapter's own one, else the layer. */
function unitOf(path: string): string {
  const [, layer, folder, ...rest] = path.split("/");
  const isAdapter = (layer === "sources" || layer === "publishers") && rest.length > 0;
  return isAdapter ? `${layer}/${folder}` : (layer ?? "");
}

const engine = /^src\/(?:core|ports|relay|routing)\//;
const impureFilesAllowed: ReadonlyMap<string, string> = new Map([
  ["src/core/clock.ts", "holds the real clock, timers and randomness that production injects"],
]);
const impureModules =
  /^node:(?:timers|net|tls|dns|dgram|http|https|http2|fs|os|process|perf_hooks|child_process|worker_threads)(?:\/|$)/;
/** Bare names only: `clock.setTimeout(` is the injected one. */
const impureNames = [
  "Date\\s*\\.\\s*now\\b",
  "new\\s+Date\\b(?!\\s*\\(\\s*[^\\s)])",
  "(?<!new\\s+)Date\\s*\\(",
  "performance\\s*\\.",
  "set(?:Timeout|Interval|Immediate)\\b",
  "AbortSignal\\s*\\.\\s*timeout\\b",
  "Math\\s*\\.\\s*random\\b",
  "crypto\\s*\\.\\s*(?:random|getRandom)\\w*",
  "random(?:UUID|Bytes|Int|FillSync)\\b",
  "process\\s*\\.",
];
const impureCode = new RegExp(`(?<![\\w$.])(?:globalThis\\s*\\.\\s*)?(?:${impureNames.join("|")})`, "g");

export function impureEngine(repository: Repository): Offence[] {
  const offences: Offence[] = [];
  for (const module of repository.modules()) {
    const { path: file } = module;
    if (!engine.test(file) || isTestFile(file) || impureFilesAllowed.has(file)) continue;
    for (const { specifier, line } of module.imports) {
      if (impureModules.test(specifier)) offences.push({ file, line, what: `imports ${specifier}` });
    }
    for (const match of module.code.matchAll(impureCode)) {
      offences.push({ file, line: module.lineAt(match.index), what: `uses ${match[0].replace(/\s+/g, " ")}` });
    }
  }
  return offences;
}

export function undeclaredPackages(repository: Repository): Offence[] {
  const offences: Offence[] = [];
  for (const module of repository.modules()) {
    const manifest = repository.manifest(manifestPathFor(repository, module.path));
    const shipped = module.path.startsWith("src/") && !isTestFile(module.path);
    const declared = shipped ? shippedPackages(manifest) : allPackages(repository, manifest);
    for (const { name, line } of packagesOf(module)) {
      if (declared.has(name) || name === manifest.name) continue;
      const where = shipped ? "dependencies or peerDependencies" : "package.json";
      offences.push({ file: module.path, line, what: `${name} is not declared in ${where}` });
    }
  }
  return offences;
}

function packagesOf(module: Module): { name: string; line: number }[] {
  return module.imports
    .filter(({ specifier, target }) => target === undefined && !isBuiltin(specifier) && !/^[/#]|^\w+:/.test(specifier))
    .map(({ specifier, line }) => ({ name: packageOf(specifier), line }));
}

/** `@a/b` of `@a/b/c`. */
export function packageOf(specifier: string): string {
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}

function shippedPackages(manifest: Manifest): Set<string> {
  const { dependencies, peerDependencies, optionalDependencies } = manifest;
  return new Set(Object.keys({ ...dependencies, ...peerDependencies, ...optionalDependencies }));
}

/** A workspace may lean on the root's development packages and on the root package itself. */
function allPackages(repository: Repository, manifest: Manifest): Set<string> {
  const root = repository.manifest();
  const names = [...shippedPackages(manifest), ...Object.keys(manifest.devDependencies ?? {})];
  const rootNames = [...shippedPackages(root), ...Object.keys(root.devDependencies ?? {})];
  return new Set([...names, ...rootNames, root.name ?? ""]);
}
