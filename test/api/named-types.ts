import type { Identifier, Node } from "typescript/unstable/ast";
import {
  isExpressionWithTypeArguments,
  isIdentifier,
  isTypeQueryNode,
  isTypeReferenceNode,
} from "typescript/unstable/ast/is";
import { SymbolFlags } from "typescript/unstable/sync";
import type { Declarations } from "./declarations.ts";

/** Holds the words that all entries share: another entry need not export them again. */
export const MAIN = "outbox-relay";

/** Computed from the table of settings: its parts are helpers of the computation, which nobody needs to name. */
export const COMPUTED: ReadonlySet<string> = new Set(["RelayConfig"]);

/** What an entry names in its declarations and nobody can import: `outbox-relay/kafka: KafkaTls, in KafkaOptions`. */
export function missingExports({ entries, meant, placeOf }: Declarations): string[] {
  const main = entries.find(({ name }) => name === MAIN);
  return entries.flatMap((entry) => {
    const exported = new Set([entry, main].flatMap((it) => it?.exports.map(({ symbol }) => symbol.id) ?? []));
    const missing = new Set<string>();
    for (const { name, nodes } of entry.exports) {
      if (COMPUTED.has(name)) continue;
      for (const identifier of nodes.flatMap(namesIn)) {
        const symbol = meant(identifier);
        if (symbol === undefined || exported.has(symbol.id) || (symbol.flags & SymbolFlags.TypeParameter) !== 0)
          continue;
        if (placeOf(symbol) !== undefined) missing.add(`${entry.name}: ${symbol.name}, in ${name}`);
      }
    }
    return [...missing].sort();
  });
}

/** The names of types in a declaration, at any depth. */
function namesIn(node: Node): Identifier[] {
  const found: Identifier[] = [];
  const visit = (child: Node): void => {
    const name = nameOf(child);
    if (name !== null) found.push(name);
    child.forEachChild(visit);
  };
  visit(node);
  return found;
}

function nameOf(node: Node): Identifier | null {
  if (isTypeReferenceNode(node) && isIdentifier(node.typeName)) return node.typeName;
  if (isTypeQueryNode(node) && isIdentifier(node.exprName)) return node.exprName;
  if (isExpressionWithTypeArguments(node) && isIdentifier(node.expression)) return node.expression;
  return null;
}
