import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Scene } from "./scene.ts";
import type { Verdict } from "./verdict.ts";

/**
 * A run that fails may not fail again for days: what it leaves is kept before the servers are removed. Returns the folder,
 * with the data of every broker, the technical events of every relay, and all violations.
 */
export function keepEvidence({ fleet, options, stand }: Scene, { violations }: Verdict): string {
  const folder = join(tmpdir(), `outbox-relay-evidence-${options.seed}-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  for (const [at, node] of stand.nodes.entries()) {
    cpSync(join(node.folder, "data"), join(folder, `broker-${at + 1}`), { recursive: true });
  }
  const lines = (rows: readonly unknown[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join("");
  for (const { name, told } of fleet.processes) writeFileSync(join(folder, `${name}.jsonl`), lines(told));
  writeFileSync(join(folder, "violations.jsonl"), lines(violations));
  return folder;
}
