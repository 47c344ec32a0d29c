import type { Command } from "commander";
import type { End } from "../../service/exit.ts";
import { limitOf } from "../events/events-commands.ts";
import type { Form } from "../terminal/output.ts";

/** `outbox-relay dynamodb ...`: relays intents in DynamoDB outside AWS Lambda. */
export function addDynamoDbCommands(program: Command, end: End): void {
  const dynamodb = program.command("dynamodb").description("relay intents in DynamoDB without AWS Lambda");
  dynamodb
    .command("run")
    .description("relay intents from the table's stream until stopped, one relay per file <intent>-relay.ts")
    .option("--only <types>", "only these types; other runners relay the rest")
    .option("--create", "create missing tables first, for development")
    .action(async (flags: { create?: boolean }) => {
      const { dynamoDbRun } = await import("./dynamodb-run.ts");
      end(await dynamoDbRun(flags));
    });
  dynamodb
    .command("create")
    .description("create missing tables, for development; in AWS the CDK app creates them")
    .action(async ({ output }: { output: Form }) => end(await (await tables()).createCommand(output)));
  dynamodb
    .command("list")
    .description("list undelivered intents, unordered")
    .option("--type <type>", "only this type")
    .option("--limit <number>", "number of intents, at most 500", "50")
    .action(async (flags: { type?: string; limit: string; output: Form }) =>
      end(await (await tables()).listCommand({ ...flags, limit: limitOf(flags.limit) })),
    );
  dynamodb
    .command("recover")
    .description("relay intents that the stream lost from the table, and continue halted relays")
    .option("--only <types>", "only these types")
    .option("--all", "also search for relays that are not halted; stop their runners first")
    .action(async (flags: { all?: boolean; output: Form }) => {
      const { recoverCommand } = await import("./dynamodb-recover.ts");
      end(await recoverCommand(flags));
    });
  addDeadLetterCommands(dynamodb, end);
}

function addDeadLetterCommands(dynamodb: Command, end: End): void {
  const dlq = dynamodb.command("dlq").description("list and replay dead letters of intents");
  dlq
    .command("list")
    .description("list dead letters: of one type oldest first, otherwise unordered")
    .option("--type <type>", "only this type")
    .option("--limit <number>", "number of dead letters, at most 500", "50")
    .action(async (flags: { type?: string; limit: string; output: Form }) =>
      end(await (await tables()).deadLettersCommand({ ...flags, limit: limitOf(flags.limit) })),
    );
  dlq
    .command("replay")
    .description("move dead letters back to the outbox, with their attempts reset")
    .argument("[id...]", "intent ids")
    .option("--type <type>", "all dead letters of this type")
    .option("--all", "every dead letter")
    .action(async (ids: string[], flags: { type?: string; all?: boolean; output: Form }) =>
      end(await (await tables()).replayCommand(ids, flags)),
    );
}

function tables() {
  return import("./dynamodb-tables.ts");
}
