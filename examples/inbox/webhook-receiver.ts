import { createServer } from "node:http";
import { fromHttp, isRelayError } from "../../src/inbox/index.ts"; // in your project: "outbox-relay/inbox"
import { bill, createTables, pool } from "./billing.ts";

await createTables();
const signingSecrets = (process.env.HTTP_SIGNING_SECRET ?? "").split(",");
const server = createServer(async (request, response) => {
  try {
    // The bytes as they came: the signature is that of the bytes, not of what a parser makes of them.
    const body = Buffer.concat(await request.toArray());
    await bill(fromHttp({ headers: request.headers, body }, { signingSecrets }));
    response.writeHead(204).end();
  } catch (error) {
    const isForged = isRelayError(error, "SIGNATURE_INVALID");
    if (!isForged) console.error(error);
    response.writeHead(isForged ? 401 : 500).end();
  }
});
server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => console.log("ready"));
process.once("SIGTERM", () => server.close(() => pool.end()));
