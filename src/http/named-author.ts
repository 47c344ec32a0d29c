import { z } from "zod";
import type { Author } from "../operations/author.ts";
import { authorOf, type Identity } from "./identity.ts";

/** What is noted must be what the database can hold: every character but one. */
const noted = (most: number) =>
  z
    .string()
    .min(1)
    .max(most)
    .regex(/^[^\0]*$/);

export const by = noted(200).optional().describe("Who wants it, for the record");
export const mustReason = noted(1_000).describe("Why, for the record");
export const mayReason = mustReason.optional();

/** Whoever needs no token on this machine, as the guard calls it: there a name that is given is all that is known. */
const LOCAL = "local";

/** The one who asks, and for whom: a name that is given says nothing of who holds the token. */
export function namedAuthor(identity: Identity, by: string | undefined, reason?: string): Author {
  const author = authorOf(identity, reason);
  if (identity.name === LOCAL) return { ...author, by: by ?? identity.via };
  return by === undefined || by === identity.name ? author : { ...author, by: `${by} (${identity.name})` };
}
