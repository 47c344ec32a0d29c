import { discardPublisher } from "../../publishers/discard/discard-publisher.ts";
import { stdoutPublisher } from "../../publishers/stdout/stdout-publisher.ts";
import type { DestinationScheme } from "./destination-scheme.ts";
import { refuseExactlyOnce } from "./refuse-exactly-once.ts";

/** Standard output, for a first look. */
export const stdoutScheme: DestinationScheme = {
  kind: "stdout",
  schemes: ["stdout"],
  example: "stdout:",
  configure(written) {
    if (!/^stdout:(?:\/\/)?$/i.test(written.address)) {
      written.problems.push(`${written.setting} has text after stdout: write only stdout:`);
      return null;
    }
    refuseExactlyOnce(written, "stdout");
    const { name } = written;
    const options = { name };
    const open = async () => stdoutPublisher(options);
    return { kind: "stdout", name, addresses: [], isExactlyOnce: false, usesStdout: true, warnings: [], options, open };
  },
};

/** Drops events on purpose: a route to it marks them as delivered. */
export const discardScheme: DestinationScheme = {
  kind: "discard",
  schemes: ["discard"],
  example: "discard:",
  configure(written) {
    refuseExactlyOnce(written, "discard");
    const { name } = written;
    const options = { name };
    const open = async () => discardPublisher(options);
    return { kind: "discard", name, addresses: [], isExactlyOnce: false, warnings: [], options, open };
  },
};
