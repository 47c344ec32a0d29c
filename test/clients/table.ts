import type { Client } from "./pairs.ts";
import type { Outcome } from "./scratch-app.ts";

type Rows = ReadonlyMap<string, string>;

/** The row of a pair, by what it asks npm for. */
export function rowOf(client: Client, pair: readonly string[], { installed, result }: Outcome): [string, string] {
  return [pair.join(" "), `| ${client.name} | \`${pair.join(" ")}\` | ${installed.join(", ")} | ${result} |`];
}

/** The rows of an earlier run, for what is not tried this time. */
export function rowsIn(document: string): Rows {
  const rows = document.split("\n").flatMap((line): [string, string][] => {
    const wanted = /^\| [^|]+ \| `([^`]+)` \|/.exec(line)?.[1];
    return wanted === undefined ? [] : [[wanted, line]];
  });
  return new Map(rows);
}

export function compatibilityDocument(
  clients: readonly Client[],
  rows: Rows,
  peers: Readonly<Record<string, string>>,
): string {
  const ranges = Object.entries(peers).map(([name, range]) => `| \`${name}\` | \`${range.replaceAll("|", "\\|")}\` |`);
  const tested = clients.flatMap(({ pairs }) => pairs.flatMap((pair) => rows.get(pair.join(" ")) ?? []));
  return `# Compatibility

outbox-relay brings no client of a broker with it. It uses the one that your application has, if its version is in the range:

| optional peer | range |
|---|---|
${ranges.join("\n")}

The Kafka client stays on one minor version: the transactions use its protocol calls, whose faults differ between minor
versions. The packages of OpenTelemetry must come from one release line: API 1.3 to 1.9 with SDK 2, API 1.10 with SDK 3.
\`outbox-relay\` brings a \`pg\` of its own; the writer and the inbox take the transaction of whatever \`pg\` you have.
Before 8.17 \`pg\` does not tell whether a transaction is open, so the writer asks the server: a missing table then ends your
transaction with the server's own error instead of \`TABLE_MISSING\`.

Node 22.22 or later. Every entry is loaded by \`import\` and by \`require\` under the oldest and the newest line, and
compiles with \`skipLibCheck: false\`, for \`nodenext\` and \`bundler\`.

## What was tested

Written by \`npm run test:clients\`. Each row is an application of its own: npm installs the clients, then the packed
outbox-relay beside them; the entries are loaded there, and the adapter's suites run against a real server with these clients.
\`npm test\` runs the newest of them.

| adapter | asked for | installed | suites |
|---|---|---|---|
${tested.join("\n")}
`;
}
