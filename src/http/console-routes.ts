import { z } from "zod";
import { reasonOf } from "../core/errors.ts";
import { type ConsoleFile, consoleFiles } from "./console-files.ts";
import { errorSchema, HttpError } from "./http-error.ts";
import { type Answer, type Route, route } from "./route.ts";

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/**
 * The console: files without data, for everybody who could log in. All that it shows it asks of the API, as whoever has
 * signed in. Where nobody can, it is off like the API.
 */
export function consoleRoutes(refusalOf: (asking: { readonly foreign: string | null }) => HttpError | null): Route[] {
  return [
    route({
      method: "GET",
      path: "/",
      id: "console",
      summary: "The console",
      access: "open",
      answers: {
        200: { description: "The page", schema: null, contentType: "text/html" },
        304: { description: "As it was", schema: null },
        403: { description: "The console is off here", schema: null, contentType: "text/html" },
        503: { description: "The console is not built", schema: null, contentType: "text/html" },
      },
      handle: async (asking) => {
        const refusal = refusalOf(asking);
        return refusal === null ? await pageAnswer(asking.headers) : page(403, `${refusal.message} ${refusal.fix}`);
      },
    }),
    route({
      method: "GET",
      path: "/console/{file}",
      id: "consoleFile",
      summary: "A file of the console",
      access: "open",
      params: z.object({ file: z.string().max(200) }),
      answers: {
        200: { description: "The file", schema: null, contentType: ["text/javascript", "text/css", "image/svg+xml"] },
        304: { description: "As it was", schema: null },
        403: { description: "The console is off here", schema: errorSchema },
        404: { description: "There is none of this name", schema: errorSchema },
      },
      handle: async ({ foreign, params, headers }) => {
        const refusal = refusalOf({ foreign });
        if (refusal !== null) throw refusal;
        const files = await consoleFiles().catch(() => null);
        const file = files?.get(params.file);
        if (file !== undefined && params.file !== "index.html") return answerOf(file, headers);
        throw new HttpError(
          404,
          "NOT_FOUND",
          "The console has no such file.",
          "Reload the page: it may be an older one.",
        );
      },
    }),
  ];
}

async function pageAnswer(headers: Headers): Promise<Answer> {
  try {
    const file = (await consoleFiles()).get("index.html");
    if (file === undefined) throw new Error("The console has no page. Run npm run build.");
    return answerOf(file, headers);
  } catch (error) {
    return page(503, reasonOf(error));
  }
}

function page(status: number, reason: string): Answer {
  return { status, body: excuse(reason), contentType: "text/html; charset=utf-8" };
}

function answerOf(file: ConsoleFile, headers: Headers): Answer {
  const { contentType, etag, forms, isImmutable } = file;
  const form = formFor(String(headers["accept-encoding"] ?? ""));
  const told = {
    etag,
    vary: "accept-encoding",
    "cache-control": isImmutable ? "public, max-age=31536000, immutable" : "no-cache",
  };
  if (headers["if-none-match"] === etag) return { status: 304, body: null, contentType, headers: told };
  const encoding: Record<string, string> = form === "identity" ? {} : { "content-encoding": form };
  return { status: 200, body: forms[form], contentType, headers: { ...told, ...encoding } };
}

function formFor(accepted: string): keyof ConsoleFile["forms"] {
  if (/\bbr\b/.test(accepted)) return "br";
  return /\bgzip\b/.test(accepted) ? "gzip" : "identity";
}

function excuse(reason: string): string {
  const text = reason.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>The console is not here</title>
<h1>The console is not here</h1>
<p>${text}</p>
<p>The service itself runs: see <a href="health">health</a>, <a href="openapi.json">the API</a> and the command line.</p>
</html>
`;
}
