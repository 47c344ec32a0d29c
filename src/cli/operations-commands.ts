import type { Command } from "commander";
import { addAuditCommand } from "./audit-command.ts";
import { addCompletionCommand } from "./completion-command.ts";
import { addDoctorCommand } from "./doctor-command.ts";
import type { End } from "./exit.ts";
import { addGrantsCommand } from "./grants-command.ts";
import { addLanesCommands } from "./lanes-commands.ts";
import { addLimitCommand } from "./limit-command.ts";
import { addLogCommands } from "./log-commands.ts";
import { addPauseCommands } from "./pause-commands.ts";
import { addSmokeCommand } from "./smoke-command.ts";
import { addStatusCommand } from "./status-command.ts";
import { addTopCommand } from "./top-command.ts";

/** What steers and examines the relay. */
export function addOperationsCommands(program: Command, end: End): void {
  addStatusCommand(program, end);
  addTopCommand(program, end);
  addAuditCommand(program, end);
  addPauseCommands(program, end);
  addLimitCommand(program, end);
  addLanesCommands(program, end);
  addLogCommands(program, end);
  addDoctorCommand(program, end);
  addGrantsCommand(program, end);
  addSmokeCommand(program, end);
  addCompletionCommand(program, end);
}
