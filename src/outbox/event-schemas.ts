import { RelayError, reasonOf } from "../core/errors.ts";
import type { AnyEvents } from "./event-map.ts";
import { invalid } from "./event-values.ts";
import type { NewEvent } from "./new-event.ts";

/** The common interface of zod, valibot, arktype and others: https://standardschema.dev, version 1. */
export interface StandardSchema<Input = unknown> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardSchemaResult | Promise<StandardSchemaResult>;
    readonly types?: { readonly input: Input; readonly output: unknown } | undefined;
  };
}

/** What a schema answers: the value to use, or what is wrong with the one given. */
export type StandardSchemaResult =
  | { readonly value: unknown; readonly issues?: undefined }
  | { readonly issues: readonly StandardSchemaIssue[] };

/** What a schema finds wrong, and where. */
export interface StandardSchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** By event type; a type without a schema is written unchecked. */
export type EventSchemas<Events extends object = AnyEvents> = {
  readonly [Type in keyof Events]?: StandardSchema<Events[Type]>;
};

type Schemas = ReadonlyMap<string, StandardSchema["~standard"]>;

/** Throws CONFIG_INVALID for an invalid schema, when the outbox is created rather than at the first event. */
export function checkSchemas(schemas: object | undefined): Schemas {
  return new Map(
    Object.entries(schemas ?? {}).map(([type, schema]: [string, unknown]) => {
      const standard = (Object(schema) as Partial<StandardSchema>)["~standard"];
      if (standard?.version === 1 && typeof standard.validate === "function") return [type, standard];
      const what = `The schema of ${JSON.stringify(type)} does not follow Standard Schema 1, as those of zod, valibot and arktype do`;
      throw new RelayError("CONFIG_INVALID", what);
    }),
  );
}

/** Replaces payloads by what their schemas return. Throws EVENT_INVALID for the first that does not match. */
export async function validated(events: readonly NewEvent[], schemas: Schemas): Promise<readonly NewEvent[]> {
  if (schemas.size === 0) return events;
  const checked: NewEvent[] = [];
  for (const event of events) {
    const schema = schemas.get(event?.type);
    checked.push(schema === undefined ? event : { ...event, payload: await payloadOf(event, schema) });
  }
  return checked;
}

async function payloadOf(event: NewEvent, { vendor, validate }: StandardSchema["~standard"]): Promise<unknown> {
  const result = await attempt(event, vendor, () => validate(event.payload));
  if (result.issues === undefined) return result.value;
  const issues = result.issues.slice(0, ISSUES_MAX).map(issueText);
  const more = result.issues.length - issues.length;
  if (more > 0) issues.push(`and ${more} more`);
  throw invalid(event, `its payload does not match the schema of its type (${vendor}): ${issues.join("; ")}`);
}

async function attempt(
  event: NewEvent,
  vendor: string,
  validate: () => StandardSchemaResult | Promise<StandardSchemaResult>,
): Promise<StandardSchemaResult> {
  try {
    return await validate();
  } catch (error) {
    throw invalid(event, `the schema of its type (${vendor}) failed: ${reasonOf(error)}`);
  }
}

const ISSUES_MAX = 5;

function issueText({ path, message }: StandardSchemaIssue): string {
  const at = (path ?? []).map((part) => String(typeof part === "object" ? part.key : part)).join(".");
  return at === "" ? message : `${at}: ${message}`;
}
