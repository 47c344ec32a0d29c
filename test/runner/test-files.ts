import { isTestFile, openRepository, type Repository } from "../tidy/repository.ts";

export type TestFile = {
  readonly path: string;
  /** False for tests that run anywhere within seconds: `npm run test:fast`. */
  readonly needsServer: boolean;
  /** Every file of the project that the test loads, itself included. */
  readonly loads: ReadonlySet<string>;
};

/** Whoever starts a real server gets its program through one of these. */
const SERVER_PROGRAMS = [
  "test/servers/postgres-binaries.ts",
  "test/servers/debian-programs.ts",
  "test/servers/maven-jars.ts",
  "src/dev/embedded-postgres.ts",
];

/** They read files that they do not import: documents, settings, all sources. */
const READ_EVERYTHING = [
  "test/tidy.test.ts",
  "test/api.test.ts",
  "test/docs.test.ts",
  "test/generated.test.ts",
  "test/package.test.ts",
  "test/clients/pairs.test.ts",
  "test/documents/documents.test.ts",
  "test/documents/types.test.ts",
];

export function findTestFiles(root: string): TestFile[] {
  const repository = openRepository(root);
  const imports = importsOf(repository);
  return repository.files.filter(isTestFile).map((path) => {
    const loads = reachable(path, imports);
    return { path, loads, needsServer: SERVER_PROGRAMS.some((file) => loads.has(file)) };
  });
}

/** The tests that a change of these files can break. */
export function affectedBy(changed: readonly string[], files: readonly TestFile[]): TestFile[] {
  if (changed.length === 0) return [];
  return files.filter(({ path, loads }) => READ_EVERYTHING.includes(path) || changed.some((file) => loads.has(file)));
}

function importsOf(repository: Repository): ReadonlyMap<string, readonly string[]> {
  return new Map(
    repository.modules().map(({ path, imports }) => [path, imports.flatMap(({ target }) => target ?? [])]),
  );
}

function reachable(start: string, imports: ReadonlyMap<string, readonly string[]>): ReadonlySet<string> {
  const seen = new Set<string>();
  const waiting = [start];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (seen.has(path)) continue;
    seen.add(path);
    waiting.push(...(imports.get(path) ?? []));
  }
  return seen;
}
