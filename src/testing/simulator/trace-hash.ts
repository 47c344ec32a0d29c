/** FNV-1a over the parts of a line: cheap enough for every line of every seed. */
export function hashText(hash: number, who: string, atMs: number, what: string): number {
  let next = hash ^ Math.floor(atMs * 1_000);
  for (let index = 0; index < who.length; index += 1) next = Math.imul(next ^ who.charCodeAt(index), 0x01000193);
  for (let index = 0; index < what.length; index += 1) next = Math.imul(next ^ what.charCodeAt(index), 0x01000193);
  return next;
}
