/** A text in dollar quotes whose tag does not occur in it. */
export function dollarQuoted(text: string): string {
  let tag = "$managed$";
  while (text.includes(tag)) tag = `$m${tag.length}${tag.slice(1)}`;
  return `${tag}${text}${tag}`;
}
