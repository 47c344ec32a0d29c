import type { Offence, Repository } from "./repository.ts";

/** Every adapter folder has the same files, so that a reader of one knows his way around in all of them. */
export function incompleteAdapters(repository: Repository): Offence[] {
  const folders = new Map<string, string>();
  for (const file of repository.files) {
    const match = /^src\/(source|publisher)s\/([^/]+)\//.exec(file);
    if (match) folders.set(match[0], `${match[2]}-${match[1]}.ts`);
  }
  return [...folders].flatMap(([folder, main]) =>
    [main, "README.md"]
      .filter((name) => !repository.has(folder + name))
      .map((name) => ({ file: folder + name, line: 1, what: "is missing" })),
  );
}

/** Long statements stand in files of their own, `.sql.ts`, and nothing else stands there. */
export function foreignInStatementFiles(repository: Repository): Offence[] {
  return repository
    .modules()
    .filter(({ path }) => path.endsWith(".sql.ts"))
    .flatMap(({ path: file, exports }) => {
      const values = exports.filter(({ kind }) => kind === "value");
      if (values.length === 0) return [{ file, line: 1, what: "exports no statement" }];
      return values
        .filter(({ name }) => !/(?:Sql|^[A-Z_]+)$/.test(name))
        .map(({ line, name }) => ({ file, line, what: `exports ${name}` }));
    });
}
