import { DEFAULT_FILE } from "./config-file.ts";

type StarterFormat = "yaml" | "json" | "ts";

interface Starter {
  readonly file: string;
  readonly text: string;
}

/** A config file with the few required settings, to be filled in. */
export function starterConfig(format: StarterFormat): Starter {
  const file = DEFAULT_FILE.replace(/yaml$/, format);
  return { file, text: { yaml: YAML, json: JSON_TEXT, ts: TS }[format] };
}

const YAML = `# Settings of outbox-relay. List them all with \`outbox-relay config print\`, or see docs/reference/settings.md.
# \${NAME} reads an environment variable, \${NAME:-default} has a default. Environment variables of the same
# settings (DATABASE_URL, KAFKA_BROKERS and so on) override this file, and \`--set key=value\` overrides both.

database:
  # The database with the outbox tables. Keep the password out of this file.
  url: \${DATABASE_URL:-postgres://localhost:5432/postgres}

sources:
  # The schemas whose outbox tables are read; "*" means every schema that has one.
  schemas: ["*"]

destination:
  # stdout: prints the events, for a first look. For Kafka, remove this line and use the next two.
  url: "stdout:"
  # kafka:
  #   brokers: [localhost:9092]

# retry:
#   maxAttempts: 10     # the failure with this number is the last
#   initialDelay: 1s    # doubles with each further failure
#   maxDelay: 5m

# http:
#   host: 127.0.0.1     # 0.0.0.0 accepts other machines too; API and console then need adminToken
#   port: 3012
`;

const JSON_TEXT = `${JSON.stringify(
  {
    database: { url: `\${DATABASE_URL:-postgres://localhost:5432/postgres}` },
    sources: { schemas: ["*"] },
    destination: { url: "stdout:" },
  },
  null,
  2,
)}\n`;

const TS = `import { defineConfig } from "outbox-relay";

export default defineConfig({
  // The database with the outbox tables. Keep the password out of this file.
  database: { url: process.env.DATABASE_URL ?? "postgres://localhost:5432/postgres" },
  // The schemas whose outbox tables are read; "*" means every schema that has one.
  sources: { schemas: ["*"] },
  // Prints the events, for a first look. For Kafka: { kafka: { brokers: ["localhost:9092"] } }
  destination: { url: "stdout:" },
});
`;
