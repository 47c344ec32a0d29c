/**
 * The house rules, checked over all files of the repository. A failing rule lists every offence and says what to do.
 * The rules themselves live in test/tidy/ and have tests of their own there.
 */
import assert from "node:assert/strict";
import { resolve } from "node:path";
import { test } from "node:test";
import { foreignInStatementFiles, incompleteAdapters } from "./tidy/adapters.ts";
import { deadConsoleExports, longComponents, wrongConsoleImports } from "./tidy/console.ts";
import { importCycles } from "./tidy/cycles.ts";
import { deadExports, deadFiles } from "./tidy/dead-code.ts";
import { brokenLinks, changelogForm, mergeMarkers, unknownCommands } from "./tidy/documents.ts";
import { namesBesideGlossary } from "./tidy/glossary.ts";
import { impureEngine, undeclaredPackages, wrongImports } from "./tidy/layers.ts";
import { privateParts } from "./tidy/private-parts.ts";
import { type Offence, openRepository, type Repository } from "./tidy/repository.ts";
import { unprovedRequirements } from "./tidy/requirements.ts";
import { longFiles, longFunctions } from "./tidy/sizes.ts";
import { testsThatSleep, testsWithoutCheck } from "./tidy/test-habits.ts";
import { bannedWords, registryAddresses, vagueNames } from "./tidy/words.ts";

const repository = openRepository(resolve(import.meta.dirname, ".."));

function check(rule: (repository: Repository) => Offence[], cure: string): void {
  const offences = rule(repository);
  const list = offences.map(({ file, line, what }) => `  ${file}:${line} ${what}`).join("\n");
  assert.equal(offences.length, 0, `${offences.length} offences:\n${list}\nWhat to do: ${cure}\n`);
}

test("imports point one way", () => {
  check(wrongImports, "move the shared part to a lower folder, or pass it in; the order is in test/tidy/layers.ts");
});

test("no files of src import each other in a circle", () => {
  check(importCycles, "move what both need to a file of its own, or pass it in");
});

test("the engine touches no clock, timer, randomness or socket but the injected ones", () => {
  check(impureEngine, "take it from the injected clock or randomness (src/core/clock.ts), or move it to an adapter");
});

test("every imported package is declared", () => {
  check(undeclaredPackages, "add it to package.json: what src/ imports to (peer) dependencies, the rest to dev ones");
});

test("no private part of a library is used", () => {
  check(privateParts, "use what the library documents; test/tidy/private-parts.ts says how this is checked");
});

test("the console knows the HTTP API alone", () => {
  check(wrongConsoleImports, "ask the API for it; of src/http/schemas it may take types, by `import type`");
});

test("no component of the console is too long, and no export of it is unused", () => {
  check(longComponents, "move a part of what it shows to a component of its own");
  check(deadConsoleExports, "drop `export`, or the whole declaration");
});

test("no file is too long", () => {
  check(longFiles, "split it by what its parts are about");
});

test("no function is too long", () => {
  check(longFunctions, "keep the branches, move the leaves to functions of their own");
});

test("every file of src is reachable from an entry point", () => {
  check(deadFiles, "delete the file, or import it; what only tests need belongs to test/ or src/testing/");
});

test("every exported name is imported somewhere", () => {
  check(deadExports, "drop `export`, or the whole declaration");
});

test("no leftover note, loose type, skipped test or word from outside (A22)", () => {
  check(bannedWords, "finish it, type it, run it, or say it without the word; the list is in test/tidy/words.ts");
});

test("file and folder names say what is inside", () => {
  check(vagueNames, "name it for the noun inside");
});

test("names of the sources use the words of the glossary", () => {
  check(namesBesideGlossary, "use the term that docs/glossary.md gives for it");
});

test("the lock file names no registry", () => {
  check(registryAddresses, "install with omit-lockfile-registry-resolved=true (.npmrc) and commit the new lock file");
});

test("every requirement is listed, and the done ones are in a test title", () => {
  check(unprovedRequirements, "mend the row, write the test with the id in its title, or set the status back");
});

test("every link and anchor in the documents resolves", () => {
  check(brokenLinks, "correct the link, or write what it promises");
});

test("no file holds a conflict of a merge", () => {
  check(mergeMarkers, "keep what is true now, and delete the markers");
});

test("every command in the documents exists", () => {
  check(unknownCommands, "correct the command, or add the script to package.json");
});

test("the changelog keeps its form", () => {
  check(changelogForm, "write `## [version] - date` over `### Added` and its like over a list, newest first");
});

test("every adapter folder has its main file and its README", () => {
  check(incompleteAdapters, "add the file; CONTRIBUTING.md says what belongs into it");
});

test("statement files export statements alone", () => {
  check(foreignInStatementFiles, "name a statement with Sql at its end; move what is none to the file that uses it");
});

test("every test checks something", () => {
  check(testsWithoutCheck, "assert the result, or delete the test");
});

test("no test sleeps", () => {
  check(testsThatSleep, "await a condition instead; where only time will do, end the line with `// why: <reason>`");
});
