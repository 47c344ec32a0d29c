import type { Command } from "commander";
import type { End } from "../service/exit.ts";
import { addAuditCommand } from "./events/audit-command.ts";
import { addLanesCommands } from "./pipelines/lanes-commands.ts";
import { addLimitCommand } from "./pipelines/limit-command.ts";
import { addLogCommands } from "./pipelines/log-commands.ts";
import { addPauseCommands } from "./pipelines/pause-commands.ts";
import { addPipelineCommands } from "./pipelines/pipeline-commands.ts";
import { addStatusCommand } from "./pipelines/status-command.ts";
import { addDoctorCommand } from "./setup/doctor-command.ts";
import { addGrantsCommand } from "./setup/grants-command.ts";
import { addSmokeCommand } from "./setup/smoke-command.ts";
import { addCompletionCommand } from "./terminal/completion-command.ts";
import { addTopCommand } from "./top/top-command.ts";

/** Adds the commands that control and examine the relay. */
export function addOperationsCommands(program: Command, end: End): void {
  addStatusCommand(program, end);
  addTopCommand(program, end);
  addAuditCommand(program, end);
  addPauseCommands(program, end);
  addLimitCommand(program, end);
  addLanesCommands(program, end);
  addLogCommands(program, end);
  addPipelineCommands(program, end);
  addDoctorCommand(program, end);
  addGrantsCommand(program, end);
  addSmokeCommand(program, end);
  addCompletionCommand(program, end);
}
