/** Titles of the contract suites: `kafka publisher, at least once: <rule>`. */
const PUBLISHER_TITLE = /^(.+?) publisher(?:, ([^:]+)|( that [^:]+))?: (.+)$/;
const CONTRACT_FILE = /(?:-contract|contracts\/publishers)\.test\.ts$/;
const RULE_WIDTH = 92;

/** Which rule of the publishers' contract was proved on which destination, as a table for people. */
export class ContractMatrix {
  readonly #rules = new Map<string, Map<string, "passed" | "failed">>();
  readonly #adapters = new Set<string>();

  note(file: string, title: string, result: "passed" | "failed"): void {
    const [, name, manner, kind, rule] = PUBLISHER_TITLE.exec(title) ?? [];
    if (!CONTRACT_FILE.test(file) || name === undefined || rule === undefined) return;
    const adapter = name + (manner === undefined && kind === undefined ? "" : "*");
    this.#adapters.add(adapter);
    const results = this.#rules.get(rule) ?? new Map();
    results.set(adapter, results.get(adapter) === "failed" ? "failed" : result);
    this.#rules.set(rule, results);
  }

  /** Empty when no contract ran. */
  lines(): string[] {
    if (this.#rules.size === 0) return [];
    const adapters = [...this.#adapters].sort();
    const head = `${"".padEnd(RULE_WIDTH)}  ${adapters.join("  ")}`;
    const rows = [...this.#rules].map(([rule, results]) => {
      const cells = adapters.map((adapter) => (MARKS[results.get(adapter) ?? "none"] ?? "").padEnd(adapter.length));
      return `${short(rule).padEnd(RULE_WIDTH)}  ${cells.join("  ")}`.trimEnd();
    });
    return [
      head,
      ...rows,
      "",
      "x proved   ! failed   . does not apply, by what the destination can do   * a variant of it",
    ];
  }
}

const MARKS: Readonly<Record<string, string>> = { passed: "x", failed: "!", none: "." };

function short(rule: string): string {
  return rule.length <= RULE_WIDTH ? rule : `${rule.slice(0, RULE_WIDTH - 1)}…`;
}
