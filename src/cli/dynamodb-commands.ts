import type { Command } from "commander";
import { limitOf, outputOption } from "./events-commands.ts";
import type { End } from "./exit.ts";

type Form = "text" | "json";

/** `outbox-relay dynamodb ...`: intents in DynamoDB, relayed without AWS. */
export function addDynamoDbCommands(program: Command, end: End): void {
  const dynamodb = program.command("dynamodb").description("intents in DynamoDB: run their relays without AWS Lambda");
  dynamodb
    .command("run")
    .description("relay intents from the table's stream until stopped, one relay per file <intent>-relay.ts")
    .option("--only <types>", "only intents of these types; the others are left to other runners")
    .option("--create", "make the tables first that are missing, for development")
    .action(async (flags: { create?: boolean }) => {
      const { dynamoDbRun } = await import("./dynamodb-run.ts");
      end(await dynamoDbRun(flags));
    });
  dynamodb
    .command("create")
    .description("make the tables that are missing, for development; in AWS the CDK app makes them")
    .action(async () => end(await (await tables()).createCommand()));
  dynamodb
    .command("list")
    .description("intents that are not delivered, in no order")
    .option("--type <type>", "of this type alone")
    .option("--limit <number>", "intents at most, up to 500", "50")
    .addOption(outputOption())
    .action(async (flags: { type?: string; limit: string; output: Form }) =>
      end(await (await tables()).listCommand({ ...flags, limit: limitOf(flags.limit) })),
    );
  dynamodb
    .command("recover")
    .description("relay what the table holds and the stream lost, and let halted relays go on")
    .option("--only <types>", "only intents of these types")
    .option("--all", "search also for relays that are not halted; stop their runners before")
    .addOption(outputOption())
    .action(async (flags: { all?: boolean; output: Form }) => {
      const { recoverCommand } = await import("./dynamodb-recover.ts");
      end(await recoverCommand(flags));
    });
  addDeadLetterCommands(dynamodb, end);
}

function addDeadLetterCommands(dynamodb: Command, end: End): void {
  const dlq = dynamodb.command("dlq").description("dead letters of intents: look at them, replay them");
  dlq
    .command("list")
    .description("those of a type the oldest first, otherwise in no order")
    .option("--type <type>", "of this type alone")
    .option("--limit <number>", "dead letters at most, up to 500", "50")
    .addOption(outputOption())
    .action(async (flags: { type?: string; limit: string; output: Form }) =>
      end(await (await tables()).deadLettersCommand({ ...flags, limit: limitOf(flags.limit) })),
    );
  dlq
    .command("replay")
    .description("put dead letters back into the outbox, with no attempts spent")
    .argument("[id...]", "the intents' ids")
    .option("--type <type>", "all of this type")
    .option("--all", "every dead letter")
    .addOption(outputOption())
    .action(async (ids: string[], flags: { type?: string; all?: boolean; output: Form }) =>
      end(await (await tables()).replayCommand(ids, flags)),
    );
}

function tables() {
  return import("./dynamodb-tables.ts");
}
