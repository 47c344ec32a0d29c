import { RelayError } from "../../../core/errors.ts";

export function lifeOver(table: string): RelayError {
  const what = `The server of ${table} recovered from a crash: what was read before and not written down is void,`;
  return new RelayError("DATABASE_UNREACHABLE", `${what} and its lanes go on from their checkpoints.`);
}
