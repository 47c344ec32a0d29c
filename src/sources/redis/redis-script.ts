import { createHash } from "node:crypto";

/** A Lua script. After its first run the server knows it by its digest. */
export interface Script {
  readonly text: string;
  readonly sha: string;
}

/** Computes the digest once. */
export function script(text: string): Script {
  return { text, sha: createHash("sha1").update(text).digest("hex") };
}
