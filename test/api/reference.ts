import type { Node } from "typescript/unstable/ast";
import type { Declarations, Entry, ExportedName } from "./declarations.ts";
import { COMPUTED, MAIN } from "./named-types.ts";

const FOLDER = "docs/reference/api";

/**
 * TypeDoc could make these pages, but it runs on no TypeScript after 6: beside the project's own it would need a second
 * compiler, which npm refuses.
 *
 * One page for each entry, made from its declarations and their comments: path and text. */
export function apiReference({ entries }: Declarations): Readonly<Record<string, string>> {
  const main = new Set(entries.find(({ name }) => name === MAIN)?.exports.map(({ symbol }) => symbol.id));
  const pages = entries.map((entry) => [`${FOLDER}/${fileOf(entry)}`, pageOf(entry, main)] as const);
  return { ...Object.fromEntries(pages), [`${FOLDER}/README.md`]: contents(entries) };
}

function contents(entries: readonly Entry[]): string {
  const rows = entries.map((entry) => `| [\`${entry.name}\`](${fileOf(entry)}) | ${entry.exports.length} |`);
  return `# API

Made by \`npm run generate\` from the declarations of the package and their comments: what each entry exports.

| entry | exports |
|---|---|
${rows.join("\n")}
`;
}

function pageOf(entry: Entry, main: ReadonlySet<number>): string {
  const isShared = ({ symbol }: ExportedName) => entry.name !== MAIN && main.has(symbol.id);
  const sorted = entry.exports.toSorted(
    (one, other) => compare(kindOf(one), kindOf(other)) || compare(one.name, other.name),
  );
  const own = sorted.filter((it) => !isShared(it));
  const shared = sorted.filter(isShared).map(({ name }) => `[\`${name}\`](outbox-relay.md#${anchorOf(name)})`);
  const also = shared.length === 0 ? "" : `\nAlso exported here: ${shared.join(", ")}.\n`;
  return `# ${entry.name}

Made by \`npm run generate\` from the declarations and their comments. [All entries](README.md)
${also}
${own.map(sectionOf).join("\n")}`;
}

/** Values come first: they are what a program begins with. */
function kindOf({ nodes }: ExportedName): string {
  const text = nodes.map(declared).join("\n");
  return /^(?:abstract )?(?:class|const|function)\b/m.test(text) ? "1 value" : "2 type";
}

function sectionOf({ name, nodes }: ExportedName): string {
  const comments = [...new Set(nodes.map(commentOf).filter((text) => text !== ""))];
  const code = COMPUTED.has(name)
    ? `type ${name} = object; // see docs/reference/settings.md`
    : nodes.map(declared).join("\n");
  return `## ${name}

${comments.map((text) => `${text}\n\n`).join("")}\`\`\`ts
${code}
\`\`\`
`;
}

const COMMENT = /^\s*\/\*\*([\s\S]*?)\*\//;

/** The whole statement: a variable's own node is only a part of it. */
function statementOf(node: Node): Node {
  const { parent } = node;
  return parent === undefined || isFile(parent) ? node : statementOf(parent);
}

const isFile = (node: Node): boolean => node.parent === undefined;

function commentOf(node: Node): string {
  const [, text = ""] =
    COMMENT.exec(
      statementOf(node)
        .getFullText()
        .replace(/^(?:\s*(?:import|export) [^;]*;)*/, ""),
    ) ?? [];
  const lines = text.split("\n").map((line) => line.replace(/^\s*\* ?/, "").trimEnd());
  return lines.join("\n").trim();
}

function declared(node: Node): string {
  return statementOf(node)
    .getText()
    .replace(/^export /, "")
    .replace(/^declare /, "")
    .replaceAll(/^ {4}#private;\n/gm, "")
    .replaceAll(/^ {4}private .*;\n/gm, "")
    .replaceAll(/^(?: {4})+/gm, (spaces) => " ".repeat(spaces.length / 2));
}

function fileOf({ name }: Entry): string {
  return `${name.replace("outbox-relay/", "")}.md`;
}

const anchorOf = (name: string): string => name.toLowerCase();

function compare(one: string, other: string): number {
  return one === other ? 0 : one < other ? -1 : 1;
}
