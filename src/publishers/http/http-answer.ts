import { serverText } from "../../core/server-text.ts";
import type { HttpSettings } from "./http-config.ts";
import type { Answer } from "./http-errors.ts";

/** How much of a body is kept: enough for 500 characters in any script, and for most HTML pages after their head. */
export const KEPT_BYTES_MAX = 8_192;

type Answered = Extract<Answer, { kind: "answered" }>;

/** The body of a refusal in one line and without secrets; empty if it is not readable text. */
export function answerText({ body, header }: Answered, settings: HttpSettings): string {
  const coding = header("content-encoding") ?? "identity";
  if (body.length === 0 || coding !== "identity") return "";
  const type = header("content-type") ?? "";
  const text = decoded(body, type);
  // Text for people contains no zero bytes.
  if (/\0{2}/.test(text)) return "";
  return serverText(withoutSecrets(/\bhtml\b/i.test(type) ? pageText(text) : text, settings));
}

function decoded(body: Buffer, type: string): string {
  const [, charset = "utf-8"] = /charset="?([\w-]+)/i.exec(type) ?? [];
  try {
    return new TextDecoder(charset).decode(body);
  } catch {
    return new TextDecoder().decode(body);
  }
}

function pageText(html: string): string {
  const text = html.replace(/<(script|style|head)\b[\s\S]*?(?:<\/\1\s*>|$)/gi, " ").replace(/<[^>]*(?:>|$)/g, " ");
  return text.replace(/&(?:nbsp|#160);/g, " ").replace(/&amp;/g, "&");
}

const SECRET_LENGTH_MIN = 4;
/** A path segment of this length may be a token; shorter ones are words. */
const TOKEN_LENGTH_MIN = 12;
const MASK = "***";
const LOGIN = /\b(bearer|basic|digest)\s+[\w.~+/=-]{6,}/gi;
const NAMED =
  /((?:pass(?:word|wd|phrase)?|secret|(?:\w+[_-])?token|api[_-]?key|authorization|cookie|signature)["']?\s*[:=]\s*)("[^"]*"?|'[^']*'?|[^\s,;&})]+)/gi;

/** Masks secrets, because receivers may quote the request's address, headers or body. */
function withoutSecrets(text: string, { headers, hideAnswer, target }: HttpSettings): string {
  const configured = [...headers.values()].flatMap((value) => [value, ...value.split(/\s+/)]);
  const address = "path" in target ? addressSecrets(target.path) : [];
  const secrets = [...new Set([...configured, ...address])].filter((secret) => secret.length >= SECRET_LENGTH_MIN);
  // Longest first, because one may contain another.
  secrets.sort((left, right) => right.length - left.length);
  const clean = secrets.reduce((shown, secret) => shown.replaceAll(secret, MASK), hideAnswer(text));
  return clean.replace(LOGIN, `$1 ${MASK}`).replace(NAMED, `$1${MASK}`);
}

/** The whole path, because webhook addresses contain a token; segments that may be tokens; and the query values. */
function addressSecrets(path: string): string[] {
  const [place = "", question = ""] = path.split("?");
  const parts = place.split("/").filter((part) => part.length >= TOKEN_LENGTH_MIN);
  return [path, ...(place === "/" ? [] : [place]), ...parts, ...new URLSearchParams(question).values()];
}
