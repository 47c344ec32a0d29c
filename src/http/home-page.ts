import { type Route, route } from "./route.ts";

/** Where people land who open the address in a browser. */
export function homeRoute(service: string, version: string, routes: () => readonly Route[]): Route {
  return route({
    method: "GET",
    path: "/",
    id: "home",
    summary: "What there is to see",
    access: "open",
    answers: { 200: { description: "A page with links", schema: null, contentType: "text/html" } },
    handle: async () => {
      const body = pageOf(service, version, routes());
      return { status: 200, body, contentType: "text/html; charset=utf-8" };
    },
  });
}

function pageOf(service: string, version: string, routes: readonly Route[]): string {
  const links = routes
    .filter(({ method, path }) => method === "GET" && path !== "/" && !path.includes("{"))
    .map(({ path, summary }) => `<li><a href="${path}">${path}</a> ${escaped(summary)}</li>`);
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>${escaped(service)}</title>
<h1>${escaped(service)}</h1>
<p>outbox-relay ${escaped(version)}</p>
<ul>
${links.join("\n")}
</ul>
</html>
`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
