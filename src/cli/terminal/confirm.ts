import { createInterface } from "node:readline/promises";
import { EXIT, Exit } from "../../service/exit.ts";

/** Ends the command if it must ask for confirmation but has no terminal. */
export function requireInteractive(isYes: boolean | undefined, command: string, alternatives: string): void {
  if (isYes || (process.stdin.isTTY && process.stderr.isTTY)) return;
  throw new Exit(EXIT.usage, [`${command} asks for confirmation, but this is not a terminal: ${alternatives}`]);
}

/** Asks a yes-or-no question on the terminal. */
export async function isConfirmed(question: string): Promise<boolean> {
  const dialogue = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await dialogue.question(`${question} [y/N] `);
  dialogue.close();
  return /^y(es)?$/i.test(answer.trim());
}
