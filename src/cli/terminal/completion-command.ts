import { Argument, type Command } from "commander";
import { type End, EXIT } from "../../service/exit.ts";
import { completionScript, SHELLS, type Shell } from "./completion.ts";

/** `outbox-relay completion`. */
export function addCompletionCommand(program: Command, end: End): void {
  program
    .command("completion")
    .description("print a shell script that completes commands and options with the Tab key")
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
