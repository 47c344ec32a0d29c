import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { installPrograms } from "./debian-programs.ts";
import { freePort } from "./free-port.ts";
import { startPlainServer } from "./plain-server.ts";
import type { ServerProcess } from "./server-process.ts";

export const NGINX = { nginx: "nginx" };

interface NginxOptions {
  /** The port on this machine that it passes requests on to. */
  readonly upstreamPort: number;
  /** More lines of the location, such as `proxy_http_version 1.1;`. */
  readonly location?: string;
  /** The account of its workers, where it is started by root; Debian's is www-data. */
  readonly user?: string;
}

/** A private nginx whose one location is a bare `proxy_pass`. */
export async function startNginx(options: NginxOptions): Promise<ServerProcess & { readonly url: string }> {
  await installPrograms("nginx", NGINX);
  const port = await freePort();
  const server = await startPlainServer({
    name: "nginx",
    prepare: (folder) => writeFileSync(join(folder, "nginx.conf"), configOf(folder, port, options)),
    command: (folder) => ({ program: "/usr/sbin/nginx", args: ["-p", folder, "-c", join(folder, "nginx.conf")] }),
    isReady: async () => (await fetch(`http://127.0.0.1:${port}/is-nginx-ready`)).status === 204,
  });
  return Object.assign(server, { url: `http://127.0.0.1:${port}` });
}

function configOf(folder: string, port: number, { location = "", upstreamPort, user = "www-data" }: NginxOptions) {
  const kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  return `daemon off;
${process.getuid?.() === 0 ? `user ${user};` : ""}
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events {}
http {
  access_log off;
  ${kinds.map((kind) => `${kind}_temp_path ${folder}/${kind};`).join("\n  ")}
  server {
    listen 127.0.0.1:${port};
    location = /is-nginx-ready { return 204; }
    location / { proxy_pass http://127.0.0.1:${upstreamPort}; ${location} }
  }
}
`;
}
