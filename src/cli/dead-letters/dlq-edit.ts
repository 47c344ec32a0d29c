import { readFile } from "node:fs/promises";
import { reasonOf } from "../../core/errors.ts";
import { editDeadLetter } from "../../operations/dead-letters/edit-dead-letter.ts";
import { EXIT, Exit } from "../../service/exit.ts";
import { withTarget } from "../operation-target.ts";
import { userName } from "../pipelines/pause-commands.ts";
import { type Form, printJson } from "../terminal/output.ts";

/** The options of `dlq edit`. */
export interface EditFlags {
  readonly payloadFile: string;
  readonly headersFile?: string;
  readonly source?: string;
  readonly reason: string;
  readonly output: Form;
}

/** `outbox-relay dlq edit`: replaces the payload of a dead letter and retries it. */
export async function editCommand(id: string, flags: EditFlags): Promise<number> {
  const payload = await bytesOf(flags.payloadFile);
  const headers = flags.headersFile === undefined ? undefined : headersOf(await bytesOf(flags.headersFile));
  return await withTarget(async (target) => {
    const author = { by: userName(), reason: flags.reason, via: "cli" as const };
    const changed = await editDeadLetter(target, { id, source: flags.source, payload, headers, author });
    if (changed === null) {
      throw new Exit(EXIT.notFound, [`no open dead letter with id ${id}. \`outbox-relay dlq list\` lists them.`]);
    }
    if (flags.output === "json") printJson({ changed: [changed] });
    else process.stdout.write(`${changed} has the new payload; a running relay retries it within seconds\n`);
    return EXIT.ok;
  });
}

async function bytesOf(file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    throw new Exit(EXIT.usage, [`${file} cannot be read: ${reasonOf(error)}`]);
  }
}

function headersOf(bytes: Buffer): Readonly<Record<string, string>> {
  const wrong = new Exit(EXIT.usage, ['invalid headers: write a JSON object of strings, such as {"tenant": "acme"}']);
  try {
    const value: unknown = JSON.parse(bytes.toString("utf8"));
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    if (!isObject || Object.values(value).some((it) => typeof it !== "string")) throw wrong;
    return value as Record<string, string>;
  } catch {
    throw wrong;
  }
}
