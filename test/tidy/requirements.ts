import { posix } from "node:path";
import type { Offence, Repository } from "./repository.ts";
import { testTitles } from "./test-habits.ts";

const file = "docs/requirements.md";
const parts = { A: 22, B: 6, C: 8, D: 10, E: 9, F: 7, G: 7, H: 11 };
const ids = Object.entries(parts).flatMap(([part, count]) =>
  Array.from({ length: count }, (_, n) => `${part}${n + 1}`),
);
const statuses = new Set(["done", "partly", "open"]);

interface Row {
  readonly id: string;
  readonly line: number;
  readonly status: string;
  /** Paths from the root. */
  readonly proofs: readonly string[];
}

export function unprovedRequirements(repository: Repository): Offence[] {
  if (!repository.has(file)) return [{ file, line: 1, what: "is missing" }];
  const rows = rowsOf(repository.text(file));
  const proved = new Set(testTitles(repository).flatMap((title) => title.match(/\b[A-H][1-9]\d?\b/g) ?? []));
  return [...idOffences(rows), ...rows.flatMap((row) => rowOffences(repository, row, proved))];
}

function rowsOf(text: string): Row[] {
  return text.split("\n").flatMap((line, index) => {
    const cells = line.split(/(?<!\\)\|/).map((cell) => cell.trim());
    const [, id = "", , status = "", proof = ""] = cells;
    return /^[A-Z]\d+$/.test(id) ? [{ id, line: index + 1, status, proofs: proofsOf(proof) }] : [];
  });
}

/** A proof is a link, or a path from the root between backticks. */
function proofsOf(cell: string): string[] {
  const links = [...cell.matchAll(/\]\(([^)#\s]+)/g)].map(([, target]) =>
    posix.join(posix.dirname(file), target ?? ""),
  );
  const paths = [...cell.replace(/\[[^\]]*\]\([^)]*\)/g, "").matchAll(/`([^`]+)`/g)].map(([, path]) => path ?? "");
  return [...links, ...paths];
}

function idOffences(rows: readonly Row[]): Offence[] {
  const missing = ids.filter((id) => !rows.some((row) => row.id === id));
  const strange = rows.filter(
    (row, index) => !ids.includes(row.id) || rows.findIndex(({ id }) => id === row.id) < index,
  );
  return [
    ...missing.map((id) => ({ file, line: 1, what: `${id} is not listed` })),
    ...strange.map(({ id, line }) => ({ file, line, what: `${id} is unknown or listed twice` })),
  ];
}

function rowOffences(repository: Repository, row: Row, proved: ReadonlySet<string>): Offence[] {
  const { id, line, status, proofs } = row;
  const offences = proofs
    .filter((proof) => !repository.has(proof))
    .map((proof) => ({ file, line, what: `${id}: the proof ${proof} does not exist` }));
  const add = (what: string): void => void offences.push({ file, line, what: `${id}: ${what}` });
  if (!statuses.has(status)) add(`the status is "${status}", not ${[...statuses].join(", ")}`);
  if (/^(?:done|partly)$/.test(status) && proofs.length === 0) add(`is ${status} and names no proof`);
  if (status === "done" && !proved.has(id)) add("is done and in no test title");
  return offences;
}
