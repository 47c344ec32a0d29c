import { RelayError } from "../core/errors.ts";

/** All that is wrong with the settings, one line each, so that nobody has to mend them one start at a time. */
export class ConfigProblems extends RelayError {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super("CONFIG_INVALID", problems.join("; "));
    this.name = "ConfigProblems";
    this.problems = problems;
  }
}
