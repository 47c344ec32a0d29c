import { RelayError } from "../../../core/errors.ts";

/** After a crash the server may lose positions and snapshots that it has shown, so everything in memory is void. */
export function serverRecovered(table: string): RelayError {
  const what = `The server of ${table} recovered from a crash: unsaved reading positions are void,`;
  return new RelayError("DATABASE_UNREACHABLE", `${what} and the lanes resume from their checkpoints.`);
}
