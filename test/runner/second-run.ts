import type { FileResult } from "./file-result.ts";

/**
 * They prove guarantees under faults: one failure in a thousand runs is a broken guarantee, and a second run proves
 * nothing. Most other tests drive processes, servers and browsers against deadlines, which a busy machine can miss.
 */
const ONE_TRY = ["test/chaos/", "test/torture/", "src/testing/", "-contract.test.ts"];
/** More failures than this are no coincidence. */
const FILES_MAX = 2;

/** The failed files that CI runs once more, each alone; none where a second run would hide a fault. */
export function filesToRunAgain(results: readonly FileResult[]): string[] {
  const failed = results.filter(({ failures }) => failures.length > 0).map(({ file }) => file);
  const isWorthIt = (file: string) => !ONE_TRY.some((part) => file.includes(part));
  return failed.length <= FILES_MAX && failed.every(isWorthIt) ? failed : [];
}
