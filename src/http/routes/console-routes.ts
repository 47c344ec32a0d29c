import { z } from "zod";
import { reasonOf } from "../../core/errors.ts";
import { type ConsoleFile, consoleFiles } from "../console-files.ts";
import { errorSchema, HttpError } from "../http-error.ts";
import { type Answer, type Route, route } from "../route.ts";

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/**
 * The console: static files without data, for every client that could log in. The page gets all data from the API, with
 * the rights of the logged-in user. Where the API is off, the console is too.
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
        304: { description: "Not modified", schema: null },
        403: { description: "The console is off", schema: null, contentType: "text/html" },
        503: { description: "The console was not built", schema: null, contentType: "text/html" },
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
        304: { description: "Not modified", schema: null },
        403: { description: "The console is off", schema: errorSchema },
        404: { description: "No file has this name", schema: errorSchema },
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
          "The console has no file of this name.",
          "Reload the page: it may come from an older version.",
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
  const cacheHeaders = {
    etag,
    vary: "accept-encoding",
    "cache-control": isImmutable ? "public, max-age=31536000, immutable" : "no-cache",
  };
  if (headers["if-none-match"] === etag) return { status: 304, body: null, contentType, headers: cacheHeaders };
  const encoding: Record<string, string> = form === "identity" ? {} : { "content-encoding": form };
  return { status: 200, body: forms[form], contentType, headers: { ...cacheHeaders, ...encoding } };
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
<title>The console is not available</title>
<h1>The console is not available</h1>
<p>${text}</p>
<p>The service itself is running: see <a href="health">health</a>, <a href="openapi.json">the API</a> and the command line.</p>
</html>
`;
}
