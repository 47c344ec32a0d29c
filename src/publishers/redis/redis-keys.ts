/**
 * The prefix of a stream's marker keys. In a cluster a script may only use keys of one hash slot, and the text in a
 * key's first braces determines its slot. So the stream's name is put in braces, unless it has its own. The length
 * before it distinguishes any two streams, whatever their names and ids contain.
 */
export function markerStem(prefix: string, stream: string): string {
  const isWrapped = !stream.includes("}");
  return `${prefix}${stream.length}:${isWrapped ? `{${stream}}` : stream}:`;
}
