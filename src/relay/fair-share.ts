/**
 * How many lanes of a pipeline an instance should own. The remainder of the division goes to some of the instances,
 * beginning with a different one for each pipeline, so that many small pipelines spread out. All instances compute the
 * same shares without talking to each other.
 */
export function fairShare(instances: readonly string[], self: string, lanes: number, pipeline: string): number {
  const sorted = [...new Set([...instances, self])].sort();
  const offset = sum(pipeline) % sorted.length;
  const rank = (sorted.indexOf(self) + offset) % sorted.length;
  return Math.floor(lanes / sorted.length) + (rank < lanes % sorted.length ? 1 : 0);
}

function sum(text: string): number {
  let total = 0;
  for (let i = 0; i < text.length; i += 1) total = (total * 31 + text.charCodeAt(i)) >>> 0;
  return total;
}
