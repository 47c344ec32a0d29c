import { posix } from "node:path";
import { lineOfOffset, manifestPathFor, type Offence, type Repository } from "./repository.ts";

function documents(repository: Repository): string[] {
  return repository.files.filter((path) => path.endsWith(".md"));
}

export function brokenLinks(repository: Repository): Offence[] {
  return documents(repository).flatMap((file) => {
    const text = withoutCode(repository.text(file));
    const links = [...text.matchAll(/\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\[[^\]\n]+\]:\s*(\S+)/gm)];
    return links.flatMap((match) => {
      const target = match[1] ?? match[2] ?? "";
      const problem = linkProblem(repository, file, target);
      return problem === undefined
        ? []
        : [{ file, line: lineOfOffset(text, match.index), what: `${target}: ${problem}` }];
    });
  });
}

/** What a merge leaves behind where somebody forgot to choose a side. */
export function mergeMarkers(repository: Repository): Offence[] {
  const texts = repository.files.filter((path) => /\.(md|ts|tsx|css|json|ya?ml|sql|sh)$/.test(path));
  return texts.flatMap((file) => {
    const text = repository.text(file);
    const found = [...text.matchAll(/^(?:<{7}|>{7}) .*$/gm)];
    return found.map((match) => ({ file, line: lineOfOffset(text, match.index), what: match[0] }));
  });
}

function linkProblem(repository: Repository, file: string, target: string): string | undefined {
  if (/^[a-z][a-z+.-]*:/i.test(target)) return undefined;
  if (target.startsWith("/")) return "write it relative to the file";
  const [address = "", anchor] = target.split("#");
  const path = address === "" ? file : posix.join(posix.dirname(file), decodeURIComponent(address));
  if (!repository.has(path) && posix.normalize(path) !== "./") return `${path} does not exist`;
  if (!anchor || !path.endsWith(".md")) return undefined;
  return anchorsOf(repository.text(path)).has(anchor) ? undefined : `${path} has no heading #${anchor}`;
}

/** Anchors as code hosts build them: lower case, punctuation dropped, blanks to hyphens, repeats numbered. */
export function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  const counts = new Map<string, number>();
  for (const match of withoutFences(text).matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm)) {
    const words = (match[1] ?? "").replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const slug = words.replace(/[^\p{L}\p{N}\p{M}_ -]/gu, "").replaceAll(" ", "-");
    const count = counts.get(slug) ?? 0;
    counts.set(slug, count + 1);
    anchors.add(count === 0 ? slug : `${slug}-${count}`);
  }
  for (const match of text.matchAll(/<a\s+(?:id|name)="([^"]+)"/g)) anchors.add(match[1] ?? "");
  return anchors;
}

/** Blanks the text but keeps the lines, so that line numbers stay right. */
function blankLines(text: string): string {
  return text.replace(/[^\n]/g, " ");
}

function withoutFences(text: string): string {
  return text.replace(/^( *)(```+|~~~+)[^\n]*\n[\s\S]*?^\1\2[^\n]*$/gm, blankLines);
}

function withoutCode(text: string): string {
  return withoutFences(text).replace(/(`+)[^`\n]+\1/g, blankLines);
}

/** Commands in the documents that the repository does not have: npm scripts, and files of ours given to node. */
export function unknownCommands(repository: Repository): Offence[] {
  return documents(repository).flatMap((file) => {
    const text = repository.text(file);
    const scripts = {
      ...repository.manifest().scripts,
      ...repository.manifest(manifestPathFor(repository, file)).scripts,
    };
    const unknownScripts = [...text.matchAll(/\bnpm (?:run (?:-s )?([a-z][\w:-]*)|(test|start)\b)/g)].filter(
      (match) => !((match[1] ?? match[2] ?? "") in scripts),
    );
    const unknownFiles = [...text.matchAll(/\bnode ((?:src|test|bench)\/[\w./-]+\.ts)\b/g)].filter(
      (match) => !repository.has(match[1] ?? ""),
    );
    return [...unknownScripts, ...unknownFiles].map((match) => ({
      file,
      line: lineOfOffset(text, match.index),
      what: `"${match[0]}" does not exist`,
    }));
  });
}

const changelog = "CHANGELOG.md";
const changes = new Set(["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]);
const release = /^## \[(\d+)\.(\d+)\.(\d+)\] - (?:\d{4}-\d{2}-\d{2}|Unreleased)(?: \[YANKED\])?$/;

export function changelogForm(repository: Repository): Offence[] {
  if (!repository.has(changelog)) return [{ file: changelog, line: 1, what: "is missing" }];
  const lines = repository.text(changelog).split("\n");
  const offences: Offence[] = [];
  const add = (index: number, what: string): void => void offences.push({ file: changelog, line: index + 1, what });
  if (lines[0] !== "# Changelog") add(0, 'the first line is "# Changelog"');
  const sections = lines.flatMap((text, index) => (text.startsWith("## ") ? [{ text, index }] : []));
  if (sections.length === 0) add(0, "has no version");
  let newest: readonly number[] | undefined;
  for (const [position, { text, index }] of sections.entries()) {
    if (text === "## [Unreleased]" && position === 0) continue;
    const version = release.exec(text)?.slice(1, 4).map(Number);
    if (version === undefined) add(index, `"${text}" is not "## [1.2.3] - 2000-12-31" or, on top, "## [Unreleased]"`);
    else if (newest !== undefined && !isAbove(newest, version)) add(index, "versions stand newest first");
    newest = version ?? newest;
  }
  for (const [index, text] of lines.entries()) {
    const change = /^### (.*)$/.exec(text)?.[1];
    if (change === undefined) continue;
    if (!changes.has(change)) add(index, `"${change}" is none of ${[...changes].join(", ")}`);
    if (!/^- /.test(lines.slice(index + 1).find((line) => line !== "") ?? "")) add(index, `"${change}" lists nothing`);
  }
  const { version = "" } = repository.manifest();
  const isNamed = sections.some(({ text }) => text === "## [Unreleased]" || text.startsWith(`## [${version}]`));
  if (!isNamed) add(0, `says nothing about ${version}, the version in package.json`);
  return offences;
}

function isAbove(left: readonly number[], right: readonly number[]): boolean {
  const at = left.findIndex((part, index) => part !== right[index]);
  return at >= 0 && (left[at] ?? 0) > (right[at] ?? 0);
}
