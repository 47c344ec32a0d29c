import { z } from "zod";
import type { Author } from "../operations/audit/author.ts";
import { authorOf, type Identity } from "./identity.ts";

/** The database can store every character except NUL. */
const noted = (most: number) =>
  z
    .string()
    .min(1)
    .max(most)
    .regex(/^[^\0]*$/);

export const by = noted(200).optional().describe("Who requested it, for the audit");
export const mustReason = noted(1_000).describe("The reason, for the audit");
export const mayReason = mustReason.optional();

/** The guard's name for a local user without a token: there the given name is all that is known. */
const LOCAL = "local";

/** The caller, and the person it acts for: a given name does not prove who holds the token. */
export function namedAuthor(identity: Identity, by: string | undefined, reason?: string): Author {
  const author = authorOf(identity, reason);
  if (identity.name === LOCAL) return { ...author, by: by ?? identity.via };
  return by === undefined || by === identity.name ? author : { ...author, by: `${by} (${identity.name})` };
}
