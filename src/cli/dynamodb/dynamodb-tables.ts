import { type DynamoDbConfig, loadDynamoDbConfig } from "../../config/sources/dynamodb-config.ts";
import { type DynamoDbLink, dynamoDbLink } from "../../dynamodb/dynamodb-link.ts";
import { type DynamoDbOutbox, dynamodbOutbox } from "../../dynamodb/dynamodb-outbox.ts";
import type { IntentRecord } from "../../dynamodb/intent-record.ts";
import { createTables } from "../../dynamodb/tables.ts";
import { createCheckpointTable } from "../../dynamodb-runner/checkpoints.ts";
import { undelivered } from "../../dynamodb-runner/search-table.ts";
import { EXIT, Exit } from "../../service/exit.ts";
import { countBar } from "../../service/progress.ts";
import { configSources } from "../config-sources.ts";
import { oneLine } from "../events/events-commands.ts";
import { printErrors } from "../terminal/error-output.ts";
import { type Form, printJson, textTable } from "../terminal/output.ts";

interface ListFlags {
  readonly type?: string;
  readonly limit: number;
  readonly output: Form;
}

interface ReplayFlags {
  readonly type?: string;
  readonly all?: boolean;
  readonly output: Form;
}

interface Tables {
  readonly config: DynamoDbConfig;
  readonly link: DynamoDbLink;
  readonly outbox: DynamoDbOutbox;
}

/** Bound of one replay; run it again for more. */
const REPLAY_MAX = 10_000;

/** `outbox-relay dynamodb create`. */
export async function createCommand(output: Form): Promise<number> {
  return await withTables(async ({ config, link }) => {
    await createMissing(config, link);
    const { checkpointTable, deadLetterTable, table } = config;
    if (output === "json") printJson({ tables: [table, deadLetterTable, checkpointTable] });
    else process.stdout.write(`the tables ${table}, ${deadLetterTable} and ${checkpointTable} exist\n`);
    return EXIT.ok;
  });
}

/** Creates the tables that are missing. */
export async function createMissing(config: DynamoDbConfig, link: DynamoDbLink): Promise<void> {
  await link.send("creating the tables", (client) => createTables(client, config));
  await createCheckpointTable(link, config.checkpointTable);
}

/** `outbox-relay dynamodb list`. */
export async function listCommand({ limit, output, type }: ListFlags): Promise<number> {
  return await withTables(async ({ config, link }) => {
    const found = await undelivered(link, config.table, { limit, ...(type === undefined ? {} : { type }) });
    if (output === "json") printJson({ intents: found.map(shown) });
    else if (found.length === 0) process.stderr.write("no undelivered intents\n");
    else {
      const rows = found.map((it) => [
        it.createdAt ?? "-",
        it.type,
        it.id,
        it.attemptCount,
        it.retryAt ?? "-",
        reason(it),
      ]);
      process.stdout.write(textTable(["CREATED", "TYPE", "ID", "ATTEMPTS", "DUE", "LAST ERROR"], rows));
    }
    return EXIT.ok;
  });
}

/** `outbox-relay dynamodb dlq list`. */
export async function deadLettersCommand({ limit, output, type }: ListFlags): Promise<number> {
  return await withTables(async ({ outbox }) => {
    const found = await outbox.deadLetters({ limit, ...(type === undefined ? {} : { type }) });
    if (output === "json") printJson({ deadLetters: found.map((it) => ({ ...shown(it), deadAt: it.deadAt })) });
    else if (found.length === 0) process.stderr.write("no dead letters\n");
    else {
      const rows = found.map((it) => [it.deadAt, it.type, it.id, it.attemptCount, reason(it)]);
      process.stdout.write(textTable(["DEAD SINCE", "TYPE", "ID", "ATTEMPTS", "LAST ERROR"], rows));
    }
    return EXIT.ok;
  });
}

/** `outbox-relay dynamodb dlq replay`. */
export async function replayCommand(ids: readonly string[], flags: ReplayFlags): Promise<number> {
  const { all = false, output, type } = flags;
  if ([ids.length > 0, type !== undefined, all].filter(Boolean).length !== 1) {
    throw new Exit(EXIT.usage, ["dynamodb dlq replay needs a selection of dead letters: ids, --type or --all"]);
  }
  return await withTables(async ({ outbox }) => {
    const chosen =
      ids.length > 0
        ? ids
        : (await outbox.deadLetters({ limit: REPLAY_MAX, ...(type === undefined ? {} : { type }) })).map(
            ({ id }) => id,
          );
    const bar = countBar(process.stderr);
    const results: { readonly id: string; readonly result: "replayed" | "missing" | "present" }[] = [];
    try {
      for (const id of chosen) {
        results.push({ id, result: await outbox.replay(id) });
        bar.show(results.length, chosen.length);
      }
    } finally {
      bar.end();
    }
    return printReplay(results, output, ids.length > 0);
  });
}

function printReplay(
  results: readonly { readonly id: string; readonly result: string }[],
  output: Form,
  isByIds: boolean,
): number {
  const replayed = results.filter(({ result }) => result === "replayed").length;
  if (output === "json") printJson({ replayed, results });
  else {
    process.stdout.write(`${replayed} dead letters replayed: running relays retry them within seconds\n`);
    for (const { id, result } of results) {
      if (result === "missing") printErrors([`no open dead letter with id ${id}`]);
      if (result === "present") printErrors([`unchanged: ${id} is already in the outbox`]);
    }
  }
  if (replayed === results.length) return EXIT.ok;
  return replayed === 0 && isByIds ? EXIT.notFound : EXIT.partly;
}

function shown(record: IntentRecord): object {
  const { attemptCount, correlationId, createdAt, errors, fault, headers, id, key, lastError, payload, retryAt, type } =
    record;
  const fields = { id, type, key, correlationId, createdAt, attemptCount, lastError, errors, retryAt, fault, headers };
  return { ...fields, payload: payload.toString("utf8") };
}

function reason({ fault, lastError }: IntentRecord): string {
  return oneLine(lastError ?? fault ?? "-");
}

async function withTables(work: (tables: Tables) => Promise<number>): Promise<number> {
  const config = await loadDynamoDbConfig(configSources());
  const { deadLetterTable, location, table } = config;
  const link = dynamoDbLink(location);
  const outbox = dynamodbOutbox({ ...location, table, deadLetterTable });
  try {
    return await work({ config, link, outbox });
  } finally {
    await Promise.all([outbox.close(), link.close()]);
  }
}
