import { type Command, Option } from "commander";
import { KEY_KINDS, type KeyKind, type ListedKey } from "../../operations/keys/key-list.ts";
import { type End, EXIT } from "../../service/exit.ts";
import { limitOf, oneLine } from "../events/events-commands.ts";
import { type Form, printJson } from "../terminal/output.ts";
import { textTable } from "../terminal/text-table.ts";

interface ListFlags {
  readonly kind?: KeyKind;
  readonly pipeline?: string;
  readonly contains?: string;
  readonly limit: string;
  readonly cursor?: string;
  readonly output: Form;
}

/** `outbox-relay keys list`. */
export function addKeysList(keys: Command, end: End): void {
  keys
    .command("list")
    .description("list blocked keys with the event that blocks each, or the busiest keys")
    .addOption(
      new Option(
        "--kind <kind>",
        "parked: waits for an operator; retrying: waits for a retry of its head; hot: busiest keys",
      ).choices([...KEY_KINDS]),
    )
    .option("--pipeline <name>", "only this pipeline")
    .option("--contains <text>", "only keys that contain this text, in any letter case")
    .option("--limit <number>", "page size, at most 500", "50")
    .option("--cursor <text>", "continue after a page, with the cursor that it printed")
    .action(async (flags: ListFlags) => end(await list(flags)));
}

async function list({ contains, cursor, kind, limit, output, pipeline }: ListFlags): Promise<number> {
  const rows = limitOf(limit);
  const { withTarget } = await import("../operation-target.ts");
  const { listKeys } = await import("../../operations/keys/key-list.ts");
  return await withTarget(async (target) => {
    const page = await listKeys(target, { kind, pipeline, q: contains }, { limit: rows, cursor });
    if (output === "json") printJson(page);
    else if (page.keys.length === 0) process.stderr.write("no keys match\n");
    else process.stdout.write(textTable(HEAD, page.keys.map(cells)));
    if (output === "text" && page.cursor !== null) process.stderr.write(`next page: --cursor ${page.cursor}\n`);
    return EXIT.ok;
  });
}

const HEAD = ["KEY", "KIND", "PIPELINE", "WAITING", "SINCE", "HEAD", "REASON"];

function cells({ head, key, kind, pipeline, recent, waiting }: ListedKey): string[] {
  const number = waiting === null ? "?" : `${waiting.count}${waiting.isMore ? "+" : ""}`;
  const busy = recent === null ? number : `${recent.count} of the newest ${recent.of}`;
  return [key, kind, pipeline, busy, head?.firstFailedAt ?? "-", head?.id ?? "-", oneLine(head?.reason ?? "")];
}
