import { isRelayError, reasonOf } from "../../core/errors.ts";
import { transaction } from "../../postgres/transaction.ts";
import { canConnect } from "../can-connect.ts";
import { operationReadSettings } from "../event-source.ts";
import type { DoctorDestination, DoctorSubject, Finding, ShapedTable } from "./finding.ts";

const CONNECT_MS = 2_000;
const ROWS_LOOKED_AT = 10_000;
const TYPES_MAX = 200;

/** Whether a destination can be reached, takes the events that there are, and can keep its promise. */
export async function checkDestination(
  subject: DoctorSubject,
  destination: DoctorDestination,
  shaped: readonly ShapedTable[],
): Promise<readonly Finding[]> {
  const silent = await silentBrokers(destination.brokers);
  const findings = brokerFindings(destination, silent);
  if (silent.length === destination.brokers.length && silent.length > 0) return findings;
  return [
    ...findings,
    ...(await transactionFindings(destination)),
    ...(await topicFindings(destination, await topicsOf(subject, destination, shaped))),
  ];
}

async function silentBrokers(brokers: readonly string[]): Promise<readonly string[]> {
  const answers = await Promise.all(brokers.map((broker) => canConnect(broker, CONNECT_MS)));
  return brokers.filter((_, at) => !answers[at]);
}

function brokerFindings({ brokers, name }: DoctorDestination, silent: readonly string[]): Finding[] {
  if (silent.length === 0) return [];
  const isDown = silent.length === brokers.length;
  const what = `${isDown ? "Nothing" : "Not all"} of ${name} can be reached: ${silent.join(", ")} gives no answer`;
  const fix = "Check that it runs and that the destination's setting has host and port as seen from this machine.";
  return [{ severity: isDown ? "error" : "warning", check: "destination", what, fix }];
}

async function transactionFindings({ name, prepareTransactions }: DoctorDestination): Promise<Finding[]> {
  try {
    await prepareTransactions?.();
    return [];
  } catch (error) {
    const [what = "", fix] = reasonOf(error).split(/ \[[A-Z_]+\] /);
    const way = fix ?? (isRelayError(error) ? "" : "Check the brokers and the settings of the destination.");
    return [{ severity: "error", check: "destination", what: `${name}: ${what}`, fix: way }];
  }
}

/** The topics of the events that are there, as far as the type alone decides. */
async function topicsOf(
  { database }: DoctorSubject,
  destination: DoctorDestination,
  shaped: readonly ShapedTable[],
): Promise<readonly string[]> {
  if (destination.missingTopics === undefined) return [];
  const topics = new Set<string>();
  for (const { table, shape } of shaped) {
    const rows = await transaction(database.pool, operationReadSettings(database, "looking at the types"), (session) =>
      session.rows(
        `select distinct type from (select ${shape.eventType} as type from ${shape.quotedName} t limit ${ROWS_LOOKED_AT}) s
         limit ${TYPES_MAX}`,
      ),
    );
    for (const [type] of rows) {
      const topic = destination.topicOf(type ?? "", table);
      if (topic !== null && topic !== "") topics.add(topic);
    }
  }
  return [...topics];
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
    const what = `Topics of ${name} that take nothing, unless the broker makes them by itself: ${list}`;
    const fix = topicFix.replace("{topic}", [...missing.keys()][0]!);
    return [{ severity: "warning", check: "topics", what, fix }];
  } catch (error) {
    const what = `${name} cannot be asked for its topics: ${reasonOf(error)}`;
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
