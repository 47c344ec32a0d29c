import assert from "node:assert/strict";
import { chmodSync, cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { OF_THE_RUN, type ServiceProcess, startService } from "../e2e/service-process.ts";
import { freePort } from "../servers/free-port.ts";
import { createScratch, type Scratch } from "../servers/scratch.ts";
import { until } from "../servers/until.ts";
import { type Block, type Command, commandsOf, fileOf, isLike, missingTests, type Page } from "./page.ts";
import { type Servers, withAddresses } from "./servers.ts";
import type { Shop } from "./shop.ts";

/** An orchestrator kills it after 30 s. */
const STOP_MS_MAX = 25_000;

/** Follows a page as a reader does, in a folder and with a shell of its own. */
export class Walk implements AsyncDisposable {
  readonly page: Page;
  readonly servers: Servers;
  readonly shop: Shop;
  readonly folder: string;
  readonly port: string;
  readonly #scratch: Scratch;
  #env: Readonly<Record<string, string>>;
  #service: { readonly process: ServiceProcess; readonly command: string } | null = null;
  #output = "";

  private constructor(page: Page, servers: Servers, shop: Shop, scratch: Scratch, port: string) {
    this.page = page;
    this.servers = servers;
    this.shop = shop;
    this.port = port;
    this.#scratch = scratch;
    this.folder = join(scratch.path, "project");
    const programs = join(scratch.path, "programs");
    this.#env = {
      PATH: [programs, dirname(process.execPath), process.env.PATH, "/usr/lib/postgresql/15/bin"].join(":"),
      HOME: scratch.path,
      PORT: port,
      ...OF_THE_RUN,
    };
    mkdirSync(this.folder);
    mkdirSync(programs);
    for (const [name, text] of Object.entries(PROGRAMS)) {
      writeFileSync(join(programs, name), text);
      chmodSync(join(programs, name), 0o755);
    }
  }

  /** Where the reader followed other steps first: their files are there, and the shell's variables on the same page. */
  static async open(page: Page, servers: Servers, shop: Shop, earlier: Walk | null): Promise<Walk> {
    const walk = new Walk(page, servers, shop, createScratch("page", "memory"), String(await freePort()));
    if (earlier !== null) cpSync(earlier.folder, walk.folder, { recursive: true, verbatimSymlinks: true });
    if (earlier?.page.path === page.path) walk.#env = { ...earlier.#env, PORT: walk.port };
    return walk;
  }

  /** Variables that a reader's machine has, and the page does not set. */
  set(env: Readonly<Record<string, string>>): void {
    this.#env = { ...this.#env, ...env };
  }

  /** `atHeading` is called before the first block under each heading. */
  async follow(blocks: readonly Block[], atHeading?: (heading: string) => Promise<unknown>): Promise<void> {
    let heading = "";
    for (const block of blocks) {
      if (block.heading !== heading) await atHeading?.(block.heading);
      heading = block.heading;
      const where = `${this.page.path}:${block.line}`;
      assert.deepEqual(missingTests(block), [], `${where} names tests that do not exist`);
      if (block.notRun !== null) continue;
      await this.#run(block, where).catch((cause: unknown) => {
        throw new Error(`${where} does not work as written: ${String(cause)}`, { cause });
      });
    }
  }

  async #run(block: Block, where: string): Promise<void> {
    const text = await withAddresses(block.text, this.servers, this.port);
    const file = fileOf(block);
    if (file !== null) this.#write(file, text);
    else if (block.language === "sql") await this.shop.run(text);
    else if (block.language === "sh") await this.#type(commandsOf({ ...block, text }));
    else if (block.language === "text") assert.ok(isLike(this.#output, block.text), this.#difference(block));
    else assert.equal(block.language, "mermaid", `${where}: no way to run it; name its file or say why it is not run`);
  }

  #difference({ text }: Block): string {
    return `the page shows\n${text}and the command printed\n${this.#output}`;
  }

  #write(file: string, text: string): void {
    const path = resolve(this.folder, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }

  async #type(commands: readonly Command[]): Promise<void> {
    this.#output = "";
    for (const { text, isService } of commands) {
      if (isService) await this.#serve(text);
      else await this.shell(text);
    }
  }

  /** In bash, which ends at the first failure; what it exported is there for the next command. */
  async shell(command: string): Promise<void> {
    const after = join(this.#scratch.path, "environment");
    const script = `set -euo pipefail\n${command}\nenv -0 >'${after}'`;
    await using shell = startService(["-c", script], this.#env, "/bin/bash", this.folder);
    const { code, stderr, stdout } = await shell.ended;
    assert.equal(code, 0, `${command}\n${stderr}${stdout}`);
    this.#output += stdout;
    const variables = readFileSync(after, "utf8").split("\0").filter(Boolean);
    this.#env = Object.fromEntries(variables.map((line) => [line.split("=", 1)[0], line.replace(/^[^=]*=/, "")]));
  }

  async #serve(command: string): Promise<void> {
    await this.stop();
    // A single command replaces the shell, so that a signal reaches it.
    const process = startService(["-c", command], this.#env, "/bin/bash", this.folder);
    this.#service = { process, command };
    if (command.includes("outbox-relay")) await process.becomes("healthy");
    // Before a program of one's own has begun, a signal ends it without its leave.
    else await until(`${command} prints that it runs`, () => process.stdout() !== "");
  }

  /** The end of what the page's service has printed. */
  serviceOutput(): string {
    return this.#service === null ? "" : tail(this.#service.process);
  }

  /** As Ctrl-C or an orchestrator ends it: with nothing left over. */
  async stop(): Promise<void> {
    if (this.#service === null) return;
    const { command, process } = this.#service;
    const stoppedMs = performance.now();
    process.kill("SIGTERM");
    const { code } = await process.ended;
    assert.ok(performance.now() - stoppedMs < STOP_MS_MAX, `${command} did not end in time after SIGTERM`);
    assert.equal(code, 0, `${command} ended with ${code}:\n${tail(process)}`);
    this.#service = null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#service?.process[Symbol.asyncDispose]();
    await this.#scratch.remove();
  }
}

const tail = (process: ServiceProcess) => (process.stdout() + process.stderr()).slice(-3_000);

/** A newcomer has npm, and with it npx: it runs what is installed in the folder, and nothing else. */
const PROGRAMS = {
  npm: `#!/bin/sh\nexec node '${resolve(import.meta.dirname, "npm.ts")}' "$@"\n`,
  npx: '#!/bin/sh\nprogram=$1\nshift\nexec "./node_modules/.bin/$program" "$@"\n',
};
