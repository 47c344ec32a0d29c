/**
 * The start of the keys under which the ids of a stream's events are remembered. A script may only touch keys of one
 * hash slot of a cluster, and what stands between the first braces of a key decides on its slot. So the stream's name is
 * put in braces, unless it has a pair of its own. The length in front keeps any two streams apart, whatever their names
 * and ids contain.
 */
export function markerStem(prefix: string, stream: string): string {
  const isWrapped = !stream.includes("}");
  return `${prefix}${stream.length}:${isWrapped ? `{${stream}}` : stream}:`;
}
