/** A bug planted into the shipped code when it is loaded. The simulator must notice each of them. */
export interface Mutant {
  readonly name: string;
  /** Below `src`. */
  readonly file: string;
  /** Stands exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  readonly why: string;
  /** In the same file, where several guards stand for one rule and each of them would do. */
  readonly and?: readonly { readonly find: string; readonly replace: string }[];
}

/** Throws when the text to be replaced is not there exactly once: the code has changed, and the bug with it. */
export function applyMutant(mutant: Mutant, source: string): string {
  return [mutant, ...(mutant.and ?? [])].reduce((text, { find, replace }) => {
    const parts = text.split(find);
    if (parts.length === 2) return parts.join(replace);
    const times = parts.length - 1;
    throw new Error(`The mutant "${mutant.name}" matches ${times} times in src/${mutant.file}; it must be once.`);
  }, source);
}
