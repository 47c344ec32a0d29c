/** A bug that is planted into the shipped code when it is loaded. The simulator must detect each. */
export interface Mutant {
  readonly name: string;
  /** Path below `src`. */
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  readonly why: string;
  /** More replacements in the same file, if several guards enforce the same rule. */
  readonly and?: readonly { readonly find: string; readonly replace: string }[];
}

/** Throws if the text to replace does not occur exactly once: the code has changed, so adapt the mutant. */
export function applyMutant(mutant: Mutant, source: string): string {
  return [mutant, ...(mutant.and ?? [])].reduce((text, { find, replace }) => {
    const parts = text.split(find);
    if (parts.length === 2) return parts.join(replace);
    const times = parts.length - 1;
    throw new Error(
      `The mutant "${mutant.name}" matches ${times} times in src/${mutant.file}; it must match exactly once.`,
    );
  }, source);
}
