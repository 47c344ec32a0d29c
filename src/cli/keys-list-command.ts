import { type Command, Option } from "commander";
import { KEY_KINDS, type KeyKind, type ListedKey } from "../operations/keys/key-list.ts";
import { limitOf, oneLine, outputOption, printJson } from "./events-commands.ts";
import { type End, EXIT } from "./exit.ts";
import { textTable } from "./text-table.ts";

interface ListFlags {
  readonly kind?: KeyKind;
  readonly pipeline?: string;
  readonly limit: string;
  readonly cursor?: string;
  readonly output: "text" | "json";
}

/** `outbox-relay keys list`: reads only. */
export function addKeysList(keys: Command, end: End): void {
  keys
    .command("list")
    .description("keys that stand still, and the event that holds each of them up; or the busiest ones")
    .addOption(
      new Option("--kind <kind>", "parked waits for a person, retrying for its head, hot is merely busy").choices([
        ...KEY_KINDS,
      ]),
    )
    .option("--pipeline <name>", "of this pipeline alone")
    .option("--limit <number>", "keys on a page, at most 500", "50")
    .option("--cursor <text>", "go on behind a page, as that page said")
    .addOption(outputOption())
    .action(async (flags: ListFlags) => end(await list(flags)));
}

async function list({ cursor, kind, limit, output, pipeline }: ListFlags): Promise<number> {
  const rows = limitOf(limit);
  const { withTarget } = await import("./operation-target.ts");
  const { listKeys } = await import("../operations/keys/key-list.ts");
  return await withTarget(async (target) => {
    const page = await listKeys(target, { kind, pipeline }, { limit: rows, cursor });
    if (output === "json") printJson(page);
    else if (page.keys.length === 0) process.stderr.write("no such key\n");
    else process.stdout.write(textTable(HEAD, page.keys.map(cells)));
    if (output === "text" && page.cursor !== null) process.stderr.write(`more: add --cursor ${page.cursor}\n`);
    return EXIT.ok;
  });
}

const HEAD = ["KEY", "KIND", "PIPELINE", "WAITING", "SINCE", "HEAD", "REASON"];

function cells({ head, key, kind, pipeline, recent, waiting }: ListedKey): string[] {
  const number = waiting === null ? "?" : `${waiting.count}${waiting.isMore ? "+" : ""}`;
  const busy = recent === null ? number : `${recent.count} of the newest ${recent.of}`;
  return [key, kind, pipeline, busy, head?.firstFailedAt ?? "-", head?.id ?? "-", oneLine(head?.reason ?? "")];
}
