// What `npm install` leaves behind, without a registry: the packages that are named, and no others, can be imported and
// run in this folder. Each comes from the clone, which must have a version of the line that the page names.
import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { programPath } from "../servers/program-path.ts";

interface Manifest {
  readonly version: string;
  readonly exports: Readonly<Record<string, { readonly default: string }>>;
}

const clone = resolve(import.meta.dirname, "../..");
const manifestOf = (folder: string) => JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;

const [action, ...names] = process.argv.slice(2);
if (action !== "install" || names.length === 0) throw new Error(`npm ${action} is not known here`);
for (const name of names) install(name);

function install(name: string): void {
  const [, pack = "", version] = /^(@?[^@]+)(?:@(.+))?$/.exec(name) ?? [];
  const target = resolve("node_modules", pack);
  mkdirSync(dirname(target), { recursive: true });
  rmSync(target, { recursive: true, force: true });
  if (pack === "outbox-relay") installRelay(target);
  else if (pack === "prisma") installPrisma();
  else link(pack, version, target);
}

function link(pack: string, version: string | undefined, target: string): void {
  const source = join(clone, "node_modules", pack);
  const { version: there } = manifestOf(source);
  if (version !== undefined && !`${there}.`.startsWith(`${version}.`))
    throw new Error(`${pack}@${version}: the tests run with ${there}`);
  symlinkSync(source, target);
}

/** Its sources instead of its build; Node strips types in none of a package's own files, but follows the link first. */
function installRelay(target: string): void {
  const { exports } = manifestOf(clone);
  const sources = Object.entries(exports).map(([name, { default: file }]) => [
    name,
    file.replace("./dist/", "./src/").replace(/\.js$/, ".ts"),
  ]);
  mkdirSync(target);
  writeFileSync(
    join(target, "package.json"),
    JSON.stringify({ name: "outbox-relay", type: "module", exports: Object.fromEntries(sources) }),
  );
  symlinkSync(join(clone, "src"), join(target, "src"));
  mkdirSync(resolve("node_modules/.bin"), { recursive: true });
  rmSync(resolve("node_modules/.bin/outbox-relay"), { force: true });
  symlinkSync(programPath(join(clone, "bin/outbox-relay.js")), resolve("node_modules/.bin/outbox-relay"));
}

/** Its generator is in the clone, its command line is not: 230 MB of packages. */
function installPrisma(): void {
  const program = resolve("node_modules/.bin/prisma");
  mkdirSync(dirname(program), { recursive: true });
  writeFileSync(program, `#!/bin/sh\nexec node '${join(clone, "test/documents/prisma.ts")}' "$@"\n`);
  chmodSync(program, 0o755);
}
