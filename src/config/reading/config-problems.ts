import { RelayError } from "../../core/errors.ts";

/** All problems of the settings, one per line, so that the operator can fix them in one go. */
export class ConfigProblems extends RelayError {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super("CONFIG_INVALID", problems.join("; "));
    this.name = "ConfigProblems";
    this.problems = problems;
  }
}
