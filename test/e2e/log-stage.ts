import assert from "node:assert/strict";
import type { ListedLog } from "../../src/operations/logs/log-list.ts";
import { type Ended, runCommand } from "./service-process.ts";
import type { Stage } from "./stage.ts";

export type Settings = Readonly<Record<string, string>>;

/** The stage with a managed outbox that the command itself has created. */
export async function withManagedLog(stage: Stage, settings: Settings = {}) {
  const env = { DATABASE_URL: stage.url, OUTBOX_MANAGED: "shop.log", OUTBOX_DESTINATION: "stdout:", ...settings };
  assert.match(await told(["migrate", "up"], env), /shop\.log: created, a managed outbox/);
  return Object.assign(stage, { env });
}

export async function publish({ sql }: Stage, count: number, type = "order.placed"): Promise<void> {
  await sql("select shop.log_publish($1, 'k' || n % 5, '{\"n\": ' || n || '}') from generate_series(1, $2::int) n", [
    type,
    count,
  ]);
}

export const printed = ({ stdout }: Pick<Ended, "stdout">): { id: string; type: string }[] =>
  stdout
    .split("\n")
    .filter((line) => line.startsWith('{"id":'))
    .map((line) => JSON.parse(line) as { id: string; type: string });

export async function told(args: readonly string[], env: Settings): Promise<string> {
  const { code, stderr, stdout } = await runCommand(args, env);
  assert.equal(code, 0, `${args.join(" ")}: ${stderr}`);
  return stdout;
}

export async function logs(env: Settings): Promise<readonly ListedLog[]> {
  return JSON.parse(await told(["log", "list", "-o", "json"], env)) as ListedLog[];
}

export const once = (env: Settings) => runCommand(["run", "--once"], env);
