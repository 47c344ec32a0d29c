import { settingsDocuments } from "../src/config/settings/reference.ts";
import { ERROR_CATALOGUE } from "../src/core/errors.ts";
import { clientSources } from "./api/client-sources.ts";

/** Every file that is made from the code: its path from the root, and its text. */
export function generatedDocuments(): Readonly<Record<string, string>> {
  return { ...settingsDocuments(), "docs/errors.md": errorsDocument(), ...clientSources() };
}

function errorsDocument(): string {
  const rows = Object.entries(ERROR_CATALOGUE)
    .toSorted(([left], [right]) => left.localeCompare(right))
    .map(([code, { retryable, fix }]) => `| <a id="${code}"></a>\`${code}\` | ${retryable ? "yes" : "no"} | ${fix} |`);
  return `# Errors

Made by \`npm run generate\` from the catalogue of errors. Each error text names the thing that it is about, then its code
in brackets, then what to do. Codes are stable: alarms and searches may rely on them.

| code | the relay tries again by itself | what to do |
|---|---|---|
${rows.join("\n")}
`;
}
