import { spawn } from "node:child_process";
import { once } from "node:events";

/** Writes one record per line through kcat and returns when all are acknowledged. */
export async function writeTopic(
  brokers: string,
  topic: string,
  lines: readonly string[],
  settings: Readonly<Record<string, string>> = {},
): Promise<void> {
  const more = Object.entries(settings).flatMap(([name, value]) => ["-X", `${name}=${value}`]);
  const kcat = spawn("kcat", ["-P", "-b", brokers, "-t", topic, "-X", "acks=all", ...more], {
    stdio: ["pipe", "ignore", "pipe"],
  });
  let complaints = "";
  kcat.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaints += text;
  });
  kcat.stdin.end(lines.map((line) => `${line}\n`).join(""));
  const [code] = (await once(kcat, "close")) as [number | null];
  if (code !== 0 || complaints.includes("Delivery failed")) throw new Error(`kcat could not write: ${complaints}`);
}
