import { isRelayError, reasonOf } from "../../core/errors.ts";
import { connectionProblem } from "./connection-problem.ts";
import type { DoctorDestination, Finding, SampledSource } from "./finding.ts";

const CONNECT_MS = 2_000;

/** Whether a destination can be reached, accepts the events of these sources, and supports its delivery guarantee. */
export async function checkDestination(
  destination: DoctorDestination,
  sources: readonly SampledSource[],
): Promise<readonly Finding[]> {
  const silent = await silentBrokers(destination.brokers);
  const findings = brokerFindings(destination, silent);
  if (silent.length === destination.brokers.length && silent.length > 0) return findings;
  const obstacles = await obstaclesOf(destination);
  findings.push(...obstacles);
  if (obstacles.some(({ severity }) => severity === "error")) return findings;
  const topics = await topicFindings(destination, topicsOf(destination, sources));
  return [...findings, ...(await transactionFindings(destination)), ...topics];
}

interface SilentBroker {
  readonly broker: string;
  readonly problem: string;
}

async function silentBrokers(brokers: readonly string[]): Promise<readonly SilentBroker[]> {
  const problems = await Promise.all(brokers.map((broker) => connectionProblem(broker, CONNECT_MS)));
  return brokers.flatMap((broker, at) => {
    const problem = problems[at] ?? null;
    return problem === null ? [] : [{ broker, problem }];
  });
}

function brokerFindings({ brokers, name }: DoctorDestination, silent: readonly SilentBroker[]): Finding[] {
  if (silent.length === 0) return [];
  const isDown = silent.length === brokers.length;
  const reached = isDown ? `${name} cannot be reached` : `Not every broker of ${name} can be reached`;
  const what = `${reached}: ${silent.map(({ broker, problem }) => `${broker}: ${problem}`).join("; ")}`;
  const fix = "Check that it runs and that the destination's setting has its host and port as seen from this machine.";
  return [{ severity: isDown ? "error" : "warning", check: "destination", what, fix }];
}

/** Reports what would make a publish fail, in the words of the destination. */
async function obstaclesOf({ examine, name }: DoctorDestination): Promise<Finding[]> {
  const fix = "Correct the destination's address or settings, or the server, then run `outbox-relay doctor` again.";
  try {
    const found = (await examine?.()) ?? [];
    return found.map(({ reason, severity }) => ({ severity, check: "destination", what: `${name}: ${reason}`, fix }));
  } catch (error) {
    return [{ severity: "error", check: "destination", ...explained(name, error, fix) }];
  }
}

/** Separates the fix, with which the message of one of our own errors ends. */
function explained(name: string, error: unknown, otherwise: string): Pick<Finding, "what" | "fix"> {
  const [what = "", fix] = reasonOf(error).split(/ \[[A-Z_]+\] /);
  return { what: `${name}: ${what}`, fix: fix ?? (isRelayError(error) ? "" : otherwise) };
}

async function transactionFindings({ examineTransactions, name }: DoctorDestination): Promise<Finding[]> {
  try {
    const fix = "Nothing to do: `outbox-relay run` creates what is missing.";
    const notes = (await examineTransactions?.()) ?? [];
    return notes.map((what) => ({ severity: "note", check: "destination", what: `${name}: ${what}`, fix }));
  } catch (error) {
    const way = "Check the brokers and the settings of the destination.";
    return [{ severity: "error", check: "destination", ...explained(name, error, way) }];
  }
}

/** The topics that the routes name, and those of the waiting events as far as the samples decide. */
function topicsOf({ namedTopics, topicsOf }: DoctorDestination, sources: readonly SampledSource[]): readonly string[] {
  const topics = sources.flatMap(({ samples, source }) => [
    ...namedTopics(source),
    ...samples.flatMap((sample) => topicsOf(sample, source)),
  ]);
  return [...new Set(topics)].filter((topic) => topic !== "");
}

async function topicFindings(
  { missingTopics, name, topicFix = "Create {topic}, or correct the route." }: DoctorDestination,
  topics: readonly string[],
): Promise<Finding[]> {
  if (missingTopics === undefined || topics.length === 0) return [];
  try {
    const missing = await missingTopics(topics);
    if (missing.size === 0) return [];
    const list = [...missing].map(([topic, reason]) => `${topic} (${reason})`).join(", ");
    const what = `Topics of ${name} that do not accept events, unless the broker creates them automatically: ${list}`;
    const fix = topicFix.replace("{topic}", [...missing.keys()][0]!);
    return [{ severity: "warning", check: "topics", what, fix }];
  } catch (error) {
    const what = `The topics of ${name} cannot be listed: ${reasonOf(error)}`;
    return [
      {
        severity: "error",
        check: "topics",
        what,
        fix: "Check the user, the password and the rights of the destination.",
      },
    ];
  }
}
