import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, test } from "node:test";
import type { Command } from "commander";
import { parse } from "yaml";
import { commands } from "../src/cli/main.ts";
import { destinationsConfig } from "../src/config/destinations/destinations-config.ts";
import { ConfigProblems } from "../src/config/reading/config-problems.ts";
import { OPEN_OUTBOX_VARIABLES } from "../src/config/reading/open-outbox-variables.ts";
import { readSettings } from "../src/config/reading/read-settings.ts";
import { routesConfig } from "../src/config/routes-config.ts";
import { ENVIRONMENT_NAMES } from "../src/config/settings/names.ts";
import { ERROR_CATALOGUE } from "../src/core/errors.ts";

const root = resolve(import.meta.dirname, "..");
const documents = globSync(["README.md", "CONTRIBUTING.md", "docs/**/*.md", "src/**/*.md", "deploy/**/*.md"], {
  cwd: root,
}).sort();

interface Quoted {
  readonly language: string;
  readonly text: string;
}

/** Everything that a document quotes as code: blocks with their language, and words between backticks. */
function quotedIn(document: string): Quoted[] {
  const text = readFileSync(resolve(root, document), "utf8");
  const blocks = [...text.matchAll(/^ *```(\w*)\n([\s\S]*?)^ *```$/gm)].map(([, language = "", code = ""]) => ({
    language,
    text: code,
  }));
  const rest = text.replace(/^ *```\w*\n[\s\S]*?^ *```$/gm, "");
  return [
    ...blocks,
    ...[...rest.matchAll(/`([^`\n]+)`/g)].map(([, code = ""]) => ({ language: "inline", text: code })),
  ];
}

const isShell = ({ language }: Quoted) => language === "sh" || language === "inline";

describe("what the documents name exists", () => {
  const program = commands(() => {});
  for (const document of documents) {
    const quoted = quotedIn(document);

    test(`A21 ${document}: its commands and their options`, () => {
      const wrong = quoted
        .filter(isShell)
        .flatMap(({ text }) => commandLines(text))
        .flatMap((words) => faultOf(program, words));
      assert.deepEqual(wrong, []);
    });

    test(`A14 ${document}: its settings, and codes of errors`, () => {
      const wrong = quoted
        .filter(isShell)
        .flatMap(({ text }) => text.match(/(?<![\w.$%])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b(?!\()/g) ?? [])
        .filter((name) => !ENVIRONMENT_NAMES.has(name) && !(name in ERROR_CATALOGUE) && !OTHERS.has(name));
      assert.deepEqual(wrong, []);
    });

    test(`A14 ${document}: its config files are understood, to the last key`, () => {
      const wrong = quoted
        .filter(({ language }) => language === "yaml")
        .map(({ text }) => parse(text) as object)
        .filter((value) => Object.keys(value).some((key) => GROUPS.has(key)))
        .flatMap(complaintsAbout);
      assert.deepEqual(wrong, []);
    });
  }
});

const GROUPS = new Set(["database", "sources", "destination", "destinations", "routes"]);

/** What the program would say of it; that a piece of a file leaves out the rest is no fault of it. */
function complaintsAbout(value: object): readonly string[] {
  const file = { name: "the document", value, hasVariables: false, lineOf: () => null };
  try {
    const { settings } = readSettings({ env: {}, file });
    const problems: string[] = [];
    const { OUTBOX_DESTINATIONS, OUTBOX_ROUTES } = settings;
    if (OUTBOX_DESTINATIONS === undefined) return [];
    const destinations = destinationsConfig(settings, problems);
    if (OUTBOX_ROUTES !== undefined) routesConfig(settings, destinations, problems);
    return problems;
  } catch (error) {
    if (error instanceof ConfigProblems) return error.problems;
    throw error;
  }
}

/** Names of the world around, which are no settings of ours. */
const OTHERS = new Set([
  ...OPEN_OUTBOX_VARIABLES,
  "DOTNET_ENVIRONMENT",
  ...["NAME_FILE", "OUTBOX_RELAY_CONFIG", "NO_COLOR", "FORCE_COLOR", "NOT_FOUND", "NODE_OPTIONS", "NODE_V8_COVERAGE"],
  ...["KURRENTDB_TEST_URL", "KURRENTDB_TEST_CATEGORY"],
  ...["ON_ERROR_STOP", "REDIS_URL", "PAYROLL_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"],
]);

/** The words behind `outbox-relay` of each command in a piece of shell. */
function commandLines(text: string): string[][] {
  return text
    .replaceAll(/\\\n\s*/g, " ")
    .split(/\n|&&|;|\|(?!\|)/)
    .map((line) =>
      line
        .replace(/(^|\s)#.*$/, "")
        .replace(/\s>\s*\S+\s*$/, "")
        .trim(),
    )
    .flatMap((line) => {
      const match = /^(?:[A-Z_]+=\S+\s+)*(?:npx\s+)?outbox-relay(?:\s+(.*))?$/.exec(line);
      return match === null ? [] : [(match[1] ?? "").match(/"[^"]*"|'[^']*'|\S+/g) ?? []];
    });
}

function faultOf(program: Command, words: readonly string[]): string[] {
  const line = `outbox-relay ${words.join(" ")}`;
  let command = program;
  const options = [...program.options];
  const rest = [...words];
  let positional = 0;
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === "--help" || word === "-h") continue;
    if (word.startsWith("-")) {
      const [flag] = word.split("=");
      const option = options.find(({ long, short }) => long === flag || short === flag);
      if (option === undefined) return [`${line}: no option ${flag}`];
      if (option.required && !word.includes("=")) rest.shift();
      continue;
    }
    const child = command.commands.find((it) => it.name() === word);
    if (child !== undefined) {
      command = child;
      options.push(...child.options);
      continue;
    }
    positional += 1;
    const isKnown = command.registeredArguments.some(({ variadic }) => variadic);
    if (!isKnown && positional > command.registeredArguments.length) return [`${line}: no command ${word}`];
  }
  return [];
}
