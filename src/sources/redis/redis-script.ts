import { createHash } from "node:crypto";

/** A Lua script; the server knows it by its digest once it has run. */
export interface Script {
  readonly text: string;
  readonly sha: string;
}

export function script(text: string): Script {
  return { text, sha: createHash("sha1").update(text).digest("hex") };
}
