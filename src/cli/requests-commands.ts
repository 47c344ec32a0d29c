import type { Command } from "commander";
import { limitOf, outputOption } from "./events-commands.ts";
import type { End } from "./exit.ts";

type Form = "text" | "json";

const CONTEXT = "as in OUTBOX_CONTEXTS: context.aggregate";
const tools = () => import("./requests-tools.ts");

/** `outbox-relay requests ...`: the requests of an event store that become jobs. */
export function addRequestsCommands(program: Command, end: End): void {
  const requests = program
    .command("requests")
    .description("requests in an event store: how far each context came, where it goes on, what became no job");
  requests
    .command("list", { isDefault: true })
    .description("checkpoint, who dispatches, jobs and dead requests of each context")
    .addOption(outputOption())
    .action(async ({ output }: { output: Form }) => end(await (await tools()).listCommand(output)));
  requests
    .command("seek")
    .description("go on at another place; shows what would be done, and does it with --yes")
    .argument("<context>", CONTEXT)
    .requiredOption("--to <place>", "beginning, now, a time such as 2026-05-01T00:00:00Z, or a checkpoint of `list`")
    .option("--yes", "do it")
    .addOption(outputOption())
    .action(async (context: string, flags: { to: string; yes?: boolean; output: Form }) =>
      end(await (await tools()).seekCommand(context, flags)),
    );
  requests
    .command("dead")
    .description("events that ask for a job and cannot become one, with the reason")
    .argument("<context>", CONTEXT)
    .option("--limit <number>", "at most, up to 500", "50")
    .addOption(outputOption())
    .action(async (context: string, flags: { limit: string; output: Form }) =>
      end(await (await tools()).deadCommand(context, { ...flags, limit: limitOf(flags.limit) })),
    );
  requests
    .command("replay")
    .description("read dead ones again and dispatch what can become a job by now")
    .argument("<context>", CONTEXT)
    .argument("[id...]", "ids of events; all dead ones without")
    .addOption(outputOption())
    .action(async (context: string, ids: string[], { output }: { output: Form }) =>
      end(await (await tools()).replayCommand(context, ids, output)),
    );
  requests
    .command("discard")
    .description("forget dead ones; their events stay in the log")
    .argument("<context>", CONTEXT)
    .argument("<id...>", "ids of events")
    .action(async (context: string, ids: string[]) => end(await (await tools()).discardCommand(context, ids)));
}
