import type { Command } from "commander";
import type { End } from "../../service/exit.ts";
import { limitOf } from "../events/events-commands.ts";
import type { Form } from "../terminal/output.ts";

const CONTEXT = "a context of OUTBOX_CONTEXTS, as context.aggregate";
const tools = () => import("./requests-tools.ts");

/** `outbox-relay requests ...`: events of an event store that request jobs. */
export function addRequestsCommands(program: Command, end: End): void {
  const requests = program
    .command("requests")
    .description("inspect the requests of an event store, move checkpoints, and handle dead requests");
  requests
    .command("list", { isDefault: true })
    .description("list checkpoint, dispatching instance, jobs and dead requests of each context")
    .action(async ({ output }: { output: Form }) => end(await (await tools()).listCommand(output)));
  requests
    .command("seek")
    .description("continue at another position; previews the change, --yes applies it")
    .argument("<context>", CONTEXT)
    .requiredOption("--to <place>", "beginning, now, a time such as 2026-05-01T00:00:00Z, or a checkpoint of `list`")
    .option("--yes", "apply the change")
    .action(async (context: string, flags: { to: string; yes?: boolean; output: Form }) =>
      end(await (await tools()).seekCommand(context, flags)),
    );
  requests
    .command("dead")
    .description("list events that request a job that cannot be created, with the reason")
    .argument("<context>", CONTEXT)
    .option("--limit <number>", "number of events, at most 500", "50")
    .action(async (context: string, flags: { limit: string; output: Form }) =>
      end(await (await tools()).deadCommand(context, { ...flags, limit: limitOf(flags.limit) })),
    );
  requests
    .command("replay")
    .description("retry dead requests")
    .argument("<context>", CONTEXT)
    .argument("[id...]", "event ids; default: all dead requests")
    .action(async (context: string, ids: string[], { output }: { output: Form }) =>
      end(await (await tools()).replayCommand(context, ids, output)),
    );
  requests
    .command("discard")
    .description("discard dead requests; their events stay in the log")
    .argument("<context>", CONTEXT)
    .argument("<id...>", "event ids")
    .action(async (context: string, ids: string[], { output }: { output: Form }) =>
      end(await (await tools()).discardCommand(context, ids, output)),
    );
}
