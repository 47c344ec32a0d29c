import { type DynamoDbConfig, loadDynamoDbConfig } from "../config/dynamodb-config.ts";
import { createTables } from "../dynamodb/create-tables.ts";
import { type DynamoDbLink, dynamoDbLink } from "../dynamodb/dynamodb-link.ts";
import { type DynamoDbOutbox, dynamodbOutbox } from "../dynamodb/dynamodb-outbox.ts";
import type { IntentRecord } from "../dynamodb/intent-record.ts";
import { createCheckpointTable } from "../lambda/local/checkpoints.ts";
import { undelivered } from "../lambda/local/search-table.ts";
import { configSources } from "./config-sources.ts";
import { oneLine, printJson } from "./events-commands.ts";
import { EXIT, Exit } from "./exit.ts";
import { countBar } from "./progress.ts";
import { textTable } from "./text-table.ts";

interface ListFlags {
  readonly type?: string;
  readonly limit: number;
  readonly output: "text" | "json";
}

interface ReplayFlags {
  readonly type?: string;
  readonly all?: boolean;
  readonly output: "text" | "json";
}

interface Tables {
  readonly config: DynamoDbConfig;
  readonly link: DynamoDbLink;
  readonly outbox: DynamoDbOutbox;
}

/** Of one replay; whoever has more runs it again. */
const REPLAY_MAX = 10_000;

export async function createCommand(): Promise<number> {
  return await withTables(async ({ config, link }) => {
    await createMissing(config, link);
    const { checkpointTable, deadLetterTable, table } = config;
    process.stdout.write(`the tables ${table}, ${deadLetterTable} and ${checkpointTable} are there\n`);
    return EXIT.ok;
  });
}

export async function createMissing(config: DynamoDbConfig, link: DynamoDbLink): Promise<void> {
  await link.send("creating the tables", (client) => createTables(client, config));
  await createCheckpointTable(link, config.checkpointTable);
}

export async function listCommand({ limit, output, type }: ListFlags): Promise<number> {
  return await withTables(async ({ config, link }) => {
    const found = await undelivered(link, config.table, { limit, ...(type === undefined ? {} : { type }) });
    if (output === "json") printJson({ intents: found.map(shown) });
    else if (found.length === 0) process.stderr.write("no intent waits\n");
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

export async function replayCommand(ids: readonly string[], flags: ReplayFlags): Promise<number> {
  const { all = false, output, type } = flags;
  if ([ids.length > 0, type !== undefined, all].filter(Boolean).length !== 1) {
    throw new Exit(EXIT.usage, ["dynamodb dlq replay needs to know which dead letters: ids, --type or --all"]);
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
    return tellReplay(results, output, ids.length > 0);
  });
}

function tellReplay(
  results: readonly { readonly id: string; readonly result: string }[],
  output: "text" | "json",
  isByIds: boolean,
): number {
  const replayed = results.filter(({ result }) => result === "replayed").length;
  if (output === "json") printJson({ replayed, results });
  else {
    process.stdout.write(`${replayed} dead letters replayed: running relays try them within seconds\n`);
    for (const { id, result } of results) {
      if (result === "missing") process.stderr.write(`no dead letter waits under ${id}\n`);
      if (result === "present") process.stderr.write(`left: ${id} is in the outbox already\n`);
    }
  }
  if (replayed === results.length) return EXIT.ok;
  return replayed === 0 && isByIds ? EXIT.notFound : EXIT.partly;
}

function shown(record: IntentRecord): object {
  const { attemptCount, correlationId, createdAt, errors, fault, headers, id, key, lastError, payload, retryAt, type } =
    record;
  const told = { id, type, key, correlationId, createdAt, attemptCount, lastError, errors, retryAt, fault, headers };
  return { ...told, payload: payload.toString("utf8") };
}

function reason({ fault, lastError }: IntentRecord): string {
  return oneLine(lastError ?? fault ?? "-");
}

async function withTables(work: (tables: Tables) => Promise<number>): Promise<number> {
  const config = await loadDynamoDbConfig(configSources());
  const { deadLetterTable, place, table } = config;
  const link = dynamoDbLink(place);
  const outbox = dynamodbOutbox({ ...place, table, deadLetterTable });
  try {
    return await work({ config, link, outbox });
  } finally {
    await Promise.all([outbox.close(), link.close()]);
  }
}
