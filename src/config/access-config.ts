import { createHash } from "node:crypto";
import type { Settings } from "./settings/settings.ts";

/**
 * From least to most rights, each including those before it: viewers read, operators act on events, admins do
 * everything.
 */
export const ROLES = ["viewer", "operator", "admin"] as const;

/** A role of a user. */
export type Role = (typeof ROLES)[number];

/** What a caller may do. Seeing payloads is separate: they can be confidential to people who operate the relay. */
export interface Rights {
  readonly role: Role;
  readonly maySeePayloads: boolean;
}

/** A configured API token. */
export interface AccessToken extends Rights {
  readonly name: string;
  /** SHA-256: of fixed length, so that comparing takes constant time. */
  readonly digest: Buffer;
}

/** Login through an OpenID Connect issuer. */
export interface OidcConfig {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly redirectUrl: string | null;
  readonly scopes: readonly string[];
  readonly roleClaim: string;
  readonly rightsByGroup: ReadonlyMap<string, Rights>;
  /** How long a login lasts before the console asks the issuer again. */
  readonly sessionMs: number;
}

/** The combined rights of the groups; null where none of them has a role. */
export function rightsOfGroups({ rightsByGroup }: OidcConfig, groups: readonly string[]): Rights | null {
  const rights = groups.flatMap((group) => rightsByGroup.get(group) ?? []);
  const role = ROLES.findLast((it) => rights.some((right) => right.role === it));
  if (role === undefined) return null;
  return { role, maySeePayloads: rights.some(({ maySeePayloads }) => maySeePayloads) };
}

/** Who may use API and console. Without tokens and issuer: only the user who runs the service, on this machine. */
export interface AccessConfig {
  readonly tokens: readonly AccessToken[];
  readonly oidc: OidcConfig | null;
  readonly sessionSecret: string;
  /** The origin that browsers see, if it differs from the service's own. */
  readonly publicOrigin: string | null;
  readonly requestsPerSecond: number;
}

/** The default: no tokens and no issuer. */
export const NO_ACCESS_RULES: AccessConfig = {
  tokens: [],
  oidc: null,
  sessionSecret: "",
  publicOrigin: null,
  requestsPerSecond: 100,
};

/** Names that the relay itself uses in the audit log. */
export const RESERVED_NAMES: readonly string[] = ["local", "nobody", "relay", "api", "console"];
const NAME = /^[\w.@-]{1,100}$/;
/** The least length of a token: a shorter one can be guessed. */
export const TOKEN_CHARACTERS_MIN = 16;
const TOKEN_FORM = "write name:role:token; the role is viewer, operator or admin, optionally followed by +payloads";
const ROLES_FORM = "write role=group pairs such as viewer=support,operator+payloads=oncall,admin=platform";

/** The access rules from the settings. */
export function accessConfig(settings: Settings, problems: string[]): AccessConfig {
  const { ADMIN_TOKEN, API_REQUESTS_PER_SECOND, PUBLIC_URL, SESSION_SECRET } = settings;
  const admin: AccessToken[] =
    ADMIN_TOKEN === undefined
      ? []
      : [
          {
            name: "admin",
            role: "admin",
            maySeePayloads: true,
            digest: digestOf("ADMIN_TOKEN", ADMIN_TOKEN, problems),
          },
        ];
  return {
    tokens: [...admin, ...namedTokens(settings, problems)],
    oidc: oidcConfig(settings, problems),
    sessionSecret: SESSION_SECRET ?? "",
    publicOrigin: PUBLIC_URL === undefined ? null : (addressOf("PUBLIC_URL", PUBLIC_URL, problems)?.origin ?? null),
    requestsPerSecond: API_REQUESTS_PER_SECOND,
  };
}

/** Each token by itself, to be redacted: the value of API_TOKENS as a whole would redact them only together. */
export function accessSecrets({ API_TOKENS }: Settings): string[] {
  return entriesOf(API_TOKENS).map((entry) => tokenPartsOf(entry)?.token ?? entry);
}

/** Warns of an ADMIN_TOKEN that is too short. */
export function accessWarnings({ ADMIN_TOKEN }: Settings): string[] {
  if (ADMIN_TOKEN === undefined || ADMIN_TOKEN.length >= TOKEN_CHARACTERS_MIN) return [];
  return [`ADMIN_TOKEN has fewer than ${TOKEN_CHARACTERS_MIN} characters and can be guessed: use a longer one`];
}

/** The digest by which tokens are compared. */
export function tokenDigest(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

function entriesOf(written: readonly string[] | undefined): string[] {
  return (written ?? []).flatMap((item) => item.split("\n").map((line) => line.trim())).filter((line) => line !== "");
}

function tokenPartsOf(entry: string): { name: string; role: string; token: string } | null {
  const [, name, role, token] = /^([^:]*):([^:]*):(.*)$/s.exec(entry) ?? [];
  return name === undefined || role === undefined || token === undefined ? null : { name, role, token };
}

/** Problems name an entry only by its position: anything else in it can be part of a token. */
function namedTokens({ ADMIN_TOKEN, API_TOKENS }: Settings, problems: string[]): AccessToken[] {
  const taken = new Set([...RESERVED_NAMES, ...(ADMIN_TOKEN === undefined ? [] : ["admin"])]);
  return entriesOf(API_TOKENS).flatMap((entry, index) => {
    const entryName = `API_TOKENS: entry ${index + 1}`;
    const parts = tokenPartsOf(entry);
    const rights = rightsOf(parts?.role ?? "");
    if (parts === null || rights === null || !NAME.test(parts.name)) {
      problems.push(`${entryName} is invalid: ${TOKEN_FORM}`);
      return [];
    }
    if (taken.has(parts.name))
      problems.push(`${entryName} has a name that is already in use: the audit log needs unique names`);
    if (parts.token.length < TOKEN_CHARACTERS_MIN) {
      problems.push(`${entryName} has a token with fewer than ${TOKEN_CHARACTERS_MIN} characters: use a longer one`);
    }
    taken.add(parts.name);
    return [{ name: parts.name, ...rights, digest: digestOf(entryName, parts.token, problems) }];
  });
}

/** Parses `operator+payloads`; null if it is not a role. */
function rightsOf(written: string): Rights | null {
  const [, name, payloads] = /^(\w+)(\+payloads)?$/.exec(written.trim()) ?? [];
  const role = ROLES.find((it) => it === name);
  if (role === undefined) return null;
  return { role, maySeePayloads: role === "admin" || payloads !== undefined };
}

function digestOf(entryName: string, token: string, problems: string[]): Buffer {
  const written = /^sha256:(.*)$/s.exec(token)?.[1];
  if (written === undefined) return tokenDigest(token);
  if (/^[0-9a-f]{64}$/i.test(written)) return Buffer.from(written, "hex");
  problems.push(`${entryName} is invalid: write sha256: followed by the 64 hexadecimal digits of the token's SHA-256`);
  return tokenDigest(token);
}

function oidcConfig(settings: Settings, problems: string[]): OidcConfig | null {
  const { OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, OIDC_ISSUER, OIDC_REDIRECT_URL, OIDC_ROLES } = settings;
  const needed = { OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, OIDC_ROLES };
  const missing = Object.entries(needed).flatMap(([name, value]) => (value === undefined ? [name] : []));
  if (missing.length === Object.keys(needed).length) return null;
  if (missing.length > 0) problems.push(`Login by OpenID Connect also needs ${missing.join(" and ")}`);
  const issuer = OIDC_ISSUER === undefined ? null : addressOf("OIDC_ISSUER", OIDC_ISSUER, problems);
  if (issuer?.protocol === "http:" && !/^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(issuer.hostname)) {
    problems.push("OIDC_ISSUER must start with https: otherwise anyone on the network path can forge a login");
  }
  if (OIDC_REDIRECT_URL !== undefined) addressOf("OIDC_REDIRECT_URL", OIDC_REDIRECT_URL, problems);
  return {
    issuer: OIDC_ISSUER ?? "",
    clientId: OIDC_CLIENT_ID ?? "",
    clientSecret: OIDC_CLIENT_SECRET ?? "",
    redirectUrl: OIDC_REDIRECT_URL ?? null,
    scopes: settings.OIDC_SCOPES ?? ["openid", "profile", "email"],
    roleClaim: settings.OIDC_ROLE_CLAIM,
    sessionMs: settings.OIDC_SESSION,
    rightsByGroup: new Map((OIDC_ROLES ?? []).flatMap((pair) => groupRights(pair, problems))),
  };
}

function groupRights(pair: string, problems: string[]): [string, Rights][] {
  const [, role, group] = /^([^=]*)=(.+)$/.exec(pair) ?? [];
  const rights = rightsOf(role ?? "");
  if (rights !== null && group !== undefined) return [[group.trim(), rights]];
  problems.push(`OIDC_ROLES has ${JSON.stringify(pair.slice(0, 100))}: ${ROLES_FORM}`);
  return [];
}

function addressOf(name: string, written: string, problems: string[]): URL | null {
  const url = URL.canParse(written) ? new URL(written) : null;
  if (url !== null && /^https?:$/.test(url.protocol)) return url;
  problems.push(`${name} is not a URL: write one such as https://relay.example.org`);
  return null;
}
