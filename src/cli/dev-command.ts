import { type Command, InvalidArgumentError } from "commander";
import { RATE_DEFAULT, RATE_MAX } from "../dev/traffic-rate.ts";
import type { End } from "./exit.ts";

const PORT_DEFAULT = 3012;

export function addDevCommand(program: Command, end: End): void {
  program
    .command("dev")
    .description("a demo shop with a page to watch and to break it: embedded PostgreSQL, traffic, the relay")
    .option(
      "--port <number>",
      "of the page; the next free one if it is taken",
      wholeNumber(1, 65_535),
      portOf(process.env),
    )
    .option("--rate <number>", "orders a second", wholeNumber(1, RATE_MAX), RATE_DEFAULT)
    .option("--no-traffic", "begin with the shop closed; it can be opened on the page")
    .option(
      "--external",
      "use the broker and the receivers of logs, metrics and traces that the environment names",
      false,
    )
    .action(async (options: { port: number; rate: number; traffic: boolean; external: boolean }) => {
      const { runDev } = await import("../dev/dev.ts");
      end(await runDev(options));
    });
}

function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Write a whole number from ${min} to ${max}.`);
  };
}

/** PORT as for `run`. What is no port is not worth an end: it is a demo. */
function portOf({ PORT }: NodeJS.ProcessEnv): number {
  const port = Number(PORT);
  return PORT !== undefined && Number.isInteger(port) && port > 0 && port < 65_536 ? port : PORT_DEFAULT;
}
