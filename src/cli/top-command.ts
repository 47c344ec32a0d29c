import { type Command, Option } from "commander";
import { type End, EXIT } from "./exit.ts";
import type { TopFlags } from "./top.ts";

export function addTopCommand(program: Command, end: End): void {
  program
    .command("top")
    .description("watch pipelines, rates, what waits and instances, by the database alone; q quits")
    .option("--once", "tell it once and end, as where there is no terminal")
    .addOption(new Option("-o, --output <form>", "json tells it once").choices(["text", "json"]).default("text"))
    .action(async (flags: TopFlags) => {
      const { withTarget } = await import("./operation-target.ts");
      const { top } = await import("./top.ts");
      end(
        await withTarget(async (target) => {
          await top(target, flags);
          return EXIT.ok;
        }),
      );
    });
}
