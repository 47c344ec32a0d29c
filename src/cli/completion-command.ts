import { Argument, type Command } from "commander";
import { completionScript, SHELLS, type Shell } from "./completion.ts";
import { type End, EXIT } from "./exit.ts";

export function addCompletionCommand(program: Command, end: End): void {
  program
    .command("completion")
    .description("print what makes the Tab key complete commands and options")
    .addArgument(new Argument("<shell>").choices(SHELLS))
    .addHelpText(
      "after",
      `
bash:  source <(outbox-relay completion bash)
zsh:   source <(outbox-relay completion zsh)
fish:  outbox-relay completion fish | source`,
    )
    .action((shell: Shell) => {
      process.stdout.write(completionScript(program, shell));
      end(EXIT.ok);
    });
}
