import type { FileResult } from "./file-result.ts";

/**
 * Their tests drive whole processes and browsers against deadlines, which a busy machine can miss. All other tests
 * prove rules and guarantees: one failure in a thousand runs is a broken guarantee, and a second run proves nothing.
 */
const WITH_DEADLINES = ["test/documents/", "test/e2e/", "test/examples/"];
/** More failures than this are no coincidence. */
const FILES_MAX = 2;

/** The failed files that CI runs once more, each alone; none where a second run would hide a fault. */
export function filesToRunAgain(results: readonly FileResult[]): string[] {
  const failed = results.filter(({ failures }) => failures.length > 0).map(({ file }) => file);
  const isWorthIt = (file: string) => WITH_DEADLINES.some((folder) => file.startsWith(folder));
  return failed.length <= FILES_MAX && failed.every(isWorthIt) ? failed : [];
}
