import { configSchema } from "./config-schema.ts";
import { defaultOf, valueText } from "./effective-settings.ts";
import { presetDefaults } from "./presets.ts";
import { SETTING_NAMES, type SettingName, settingOf } from "./settings.ts";

/** Documents that are made from the settings, by their paths in the repository. */
export function settingsDocuments(): Readonly<Record<string, string>> {
  return {
    ".env.example": environmentExample(),
    "docs/reference/settings.md": settingsReference(),
    "docs/reference/config.schema.json": `${writtenJson(configSchema())}\n`,
  };
}

const GROUPS: Readonly<Record<string, string>> = {
  database: "The database",
  service: "The process",
  http: "HTTP",
  log: "Logs",
  metrics: "Metrics",
  tracing: "Traces",
  record: "Recorded attempts",
  sources: "Sources",
  managed: "Managed outboxes",
  subscribers: "Subscribers of logs",
  intents: "Intent relays",
  requests: "Requests in an event store",
  dynamodb: "DynamoDB",
  relay: "The relay",
  destination: "The destination",
  destinations: "Several destinations",
  routes: "Routes",
  topics: "Topics",
  messages: "Messages",
  retry: "Failures",
};

const EXAMPLES: { readonly [Name in SettingName]?: string } = {
  DATABASE_URL: "postgres://relay:secret@localhost:5432/shop",
  OUTBOX_SCHEMAS: "orders,billing",
  KAFKA_BROKERS: "localhost:9092",
};

const HEAD = `# Settings

Made by \`npm run generate\` from the settings themselves; \`outbox-relay config print\` shows the ones in force and where
each comes from.

Every setting can be written in four places. The first one in this list that has it wins:

1. a flag: \`outbox-relay run --set PORT=4000\` or \`--set http.port=4000\`, as often as needed
2. an environment variable: \`PORT=4000\`. Of a secret, \`NAME_FILE\` names a file that holds it.
3. the config file: \`outbox-relay.config.ts\`, \`.js\`, \`.yaml\`, \`.yml\` or \`.json\` in the working directory, or the one
   that \`--config FILE\` or \`OUTBOX_RELAY_CONFIG\` names. \`outbox-relay init\` writes one. A key with dots is a path:
   \`http.port\` is \`port\` inside \`http\`. In YAML and JSON, \`\${NAME}\` and \`\${NAME:-default}\` in a text take a variable
   of the environment, and \`$\${\` stands for \`\${\`. Of a secret, the key with \`File\` behind it names a file that holds it.
4. the default, which for some settings depends on the table that is read

Durations take \`500ms\`, \`10s\`, \`3m\`, \`1h30m\`, \`7d\` or a number in the unit of the name, which is milliseconds unless the
name says seconds. Lists have commas between their items, or are lists in the file. The same setting twice in one place,
by a name and its alias for instance, must say the same. SIGHUP makes a running service read everything again;
on any error it goes on with the old settings. Only a restart changes \`HOST\`, \`PORT\`, \`METRICS_PORT\`, \`SERVICE_NAME\`,
where the log goes (\`LOKI_HOST\`, \`LOKI_BASIC_AUTH\`, \`LOKI_ENABLED\`), or a destination from or to standard output.

[config.schema.json](config.schema.json) tells editors what a config file can have.
`;

function settingsReference(): string {
  const sections = Object.entries(GROUPS).map(([group, title]) => {
    const rows = SETTING_NAMES.filter((name) => groupOf(name) === group).map(rowOf);
    return [`## ${title}`, "", "| key in the file | variable | default | |", "|---|---|---|---|", ...rows, ""].join(
      "\n",
    );
  });
  return [HEAD, ...sections].join("\n");
}

function groupOf(name: SettingName): string {
  return settingOf(name).path.split(".")[0] ?? "";
}

function rowOf(name: SettingName): string {
  const { path, description, secret } = settingOf(name);
  const names = [name, ...settingOf(name).aliases.map((alias) => alias.name)].map((it) => `\`${it}\``).join(", ");
  const told = `${description}${secret === null ? "" : ` (secret: also \`${name}_FILE\`)`}`;
  return `| \`${path}\` | ${names} | ${defaultText(name)} | ${told.replaceAll("|", "\\|").replaceAll("*", "\\*")} |`;
}

function defaultText(name: SettingName): string {
  return valueText(name, presetDefaults(name) ?? defaultOf(name));
}

function environmentExample(): string {
  const head =
    "# Every setting by its variable, with its default where it has one. Made by `npm run generate`.\n# OUTBOX_RELAY_CONFIG names a config file.\n";
  const entries = SETTING_NAMES.map((name) => {
    const { aliases, description, path } = settingOf(name);
    const also = aliases.length === 0 ? "" : `; also ${aliases.map((alias) => alias.name).join(", ")}`;
    const value = EXAMPLES[name] ?? valueText(name, defaultOf(name));
    return `# ${description} (${path}${also})\n#${name}=${value}\n`;
  });
  return [head, ...entries].join("\n");
}

/** With lists of single values on one line each, as the formatter wants it. */
function writtenJson(value: unknown, indent = ""): string {
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    if (value.every((item) => typeof item !== "object"))
      return `[${value.map((item) => JSON.stringify(item)).join(", ")}]`;
    return `[\n${value.map((item) => `${inner}${writtenJson(item, inner)}`).join(",\n")}\n${indent}]`;
  }
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const entries = Object.entries(value);
  if (entries.length === 0) return "{}";
  const lines = entries.map(([key, item]) => `${inner}${JSON.stringify(key)}: ${writtenJson(item, inner)}`);
  return `{\n${lines.join(",\n")}\n${indent}}`;
}
