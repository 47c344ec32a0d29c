import type { DestinationScheme } from "./destination-scheme.ts";
import { kafkaScheme } from "./kafka-scheme.ts";
import { discardScheme, stdoutScheme } from "./plain-schemes.ts";

/** Every kind of destination that an address can name, in the order in which people are told of them. */
export const SCHEMES: readonly DestinationScheme[] = [kafkaScheme, stdoutScheme, discardScheme];
