import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** One intent relay in the tests: its type and the address it sends to. */
export interface TestRelay {
  readonly type: string;
  readonly url: string;
  /** Pauses between tries. */
  readonly delaysMs: readonly number[];
}

/**
 * Writes a folder of relays as users have it. What a payload says under `manner` is asked of the receiver, unless the
 * file `mended` lies beside the relays.
 */
export function writeRelays(folder: string, relays: readonly TestRelay[]): string {
  const inside = join(folder, "relays");
  mkdirSync(inside, { recursive: true });
  for (const { delaysMs, type, url } of relays) {
    const retry = JSON.stringify({ kind: "schedule", delaysMs });
    writeFileSync(
      join(inside, `${type.toLowerCase()}-relay.ts`),
      `import { existsSync } from "node:fs";
const isMended = () => existsSync(${JSON.stringify(join(inside, "mended"))});
export default {
  type: ${JSON.stringify(type)},
  target: { url: ${JSON.stringify(url)} },
  retry: ${retry},
  translate(intent) {
    const { number, manner } = intent.json();
    return { body: { number }, headers: manner === undefined || isMended() ? {} : { "x-manner": manner } };
  },
};
`,
    );
  }
  return inside;
}
