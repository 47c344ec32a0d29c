const SEED = 0x9747b28c;
const M = 0x5bd1e995;

/** The partition that a Java producer selects for this key, so that both kinds of producers can share a topic. */
export function partitionOf(key: string, partitionCount: number): number {
  return partitionCount === 1 ? 0 : (murmur2(key) & 0x7fffffff) % partitionCount;
}

/** The buffer for the bytes of short keys; every call overwrites it. */
const scratch = Buffer.alloc(256);

/** Murmur2 over the key's UTF-8 bytes, as an integer of 32 bits. */
function murmur2(key: string): number {
  const isShort = key.length * 3 <= scratch.length;
  const bytes = isShort ? scratch : Buffer.from(key, "utf8");
  const length = isShort ? fill(key) : bytes.length;
  const whole = length & ~3;
  let hash = SEED ^ length;
  for (let at = 0; at < whole; at += 4) {
    let word = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
    word = Math.imul(word, M);
    word ^= word >>> 24;
    hash = Math.imul(hash, M) ^ Math.imul(word, M);
  }
  const left = length - whole;
  if (left > 2) hash ^= bytes[whole + 2]! << 16;
  if (left > 1) hash ^= bytes[whole + 1]! << 8;
  if (left > 0) hash = Math.imul(hash ^ bytes[whole]!, M);
  hash = Math.imul(hash ^ (hash >>> 13), M);
  return hash ^ (hash >>> 15);
}

/** Encodes short ASCII keys in a loop: a call into the runtime costs more. */
function fill(key: string): number {
  for (let at = 0; at < key.length; at++) {
    const code = key.charCodeAt(at);
    if (code > 127) return scratch.write(key, "utf8");
    scratch[at] = code;
  }
  return key.length;
}
