import type { Command } from "commander";
import { type End, EXIT } from "../../service/exit.ts";
import type { TopFlags } from "./top.ts";

/** `outbox-relay top`. */
export function addTopCommand(program: Command, end: End): void {
  program
    .command("top")
    .description(
      "watch pipelines, rates, backlog and instances from the database, and answer times from the relays of --url; q quits",
    )
    .option(
      "--url <address...>",
      "addresses of running relays, such as http://127.0.0.1:3012, to show how long each destination takes to answer",
    )
    .option("--once", "print once and exit; the default without a terminal")
    .action(async (flags: TopFlags) => {
      const { withTarget } = await import("../operation-target.ts");
      const { top } = await import("./top.ts");
      end(
        await withTarget(async (target) => {
          await top(target, flags);
          return EXIT.ok;
        }),
      );
    });
}
