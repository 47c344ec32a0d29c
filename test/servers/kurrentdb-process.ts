// A fake of KurrentDB in a process of its own: its protocol, its rules of appending, one file of data. Arguments: its
// folder, its port, the port on which tests steer it, and a password, with which it speaks TLS by the certificate in
// the folder. No real server can be had where these tests run.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { appendHandlers } from "./kurrentdb-appends.ts";
import { KurrentDbLog } from "./kurrentdb-log.ts";
import { KurrentDbReads } from "./kurrentdb-reads.ts";
import {
  type Call,
  failure,
  featuresMethods,
  featuresPb,
  frameOf,
  grpc,
  type Reply,
  streamsMethods,
} from "./kurrentdb-wire.ts";

const [folder = "", port = "", steerPort = "", password = ""] = process.argv.slice(2);
const log = new KurrentDbLog(join(folder, "events"));
const reads = new KurrentDbReads(log);

// As many calls on one connection as the web server inside the real one allows.
const server = new grpc.Server({ "grpc.max_concurrent_streams": 100, "grpc.max_receive_message_length": 17 << 20 });
server.addService(
  streamsMethods,
  guarded({ read: (call: Parameters<KurrentDbReads["read"]>[0]) => void reads.read(call), ...appendHandlers(log) }),
);
// Everybody may ask what the server can do.
server.addService(featuresMethods, {
  getSupportedMethods: (_call: Call<unknown>, reply: Reply) => reply(null, features()),
});
server.bindAsync(`127.0.0.1:${port}`, credentials(), (error) => {
  if (error !== null) throw error;
  steering.listen(Number(steerPort), "127.0.0.1");
});

function credentials(): unknown {
  if (password === "") return grpc.ServerCredentials.createInsecure();
  const [key, certificate] = ["server.key", "server.crt"].map((name) => readFileSync(join(folder, name)));
  if (key === undefined || certificate === undefined) throw new Error("no certificate");
  return grpc.ServerCredentials.createSsl(null, [{ private_key: key, cert_chain: certificate }]);
}

type Handler = (call: never, reply: Reply) => void;

/** With a password, nobody else is let in. */
function guarded<Handlers extends Readonly<Record<string, Handler>>>(handlers: Handlers): Handlers {
  if (password === "") return handlers;
  const wanted = `Basic ${Buffer.from(`admin:${password}`).toString("base64")}`;
  const refused = failure("UNAUTHENTICATED", "invalid credentials");
  const wrap = (handler: Handler) => (call: Call<unknown>, reply?: Reply) => {
    if (String(call.metadata.get("authorization")[0] ?? "") === wanted) handler(call as never, reply as Reply);
    else if (reply === undefined) call.emit("error", refused);
    else reply(refused);
  };
  return Object.fromEntries(Object.entries(handlers).map(([name, handler]) => [name, wrap(handler)])) as never;
}

function features(): Buffer {
  const methods = new featuresPb.SupportedMethods();
  methods.setEventStoreServerVersion("26.0.0");
  methods.setMethodsList(
    Object.values(streamsMethods).map(({ path }) => {
      const [, service = "", name = ""] = path.split("/");
      const method = new featuresPb.SupportedMethod();
      method.setServiceName(service.toLowerCase());
      method.setMethodName(name.toLowerCase());
      return method;
    }),
  );
  return frameOf(methods);
}

const steering = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks).toString("utf8");
  if (request.url === "/seed") seed(JSON.parse(body));
  else if (request.url === "/drop") drop(JSON.parse(body));
  const { sent, subscriptionCount: subscriptions } = reads;
  response.end(JSON.stringify({ events: log.events.length, subscriptions, sent }));
});

function drop({ how, countMax }: { readonly how: "error" | "end"; readonly countMax: number }): void {
  reads.drop(how, countMax);
}

interface Seed {
  readonly stream: string;
  readonly id: string;
  readonly type: string;
  readonly data: unknown;
  /** Text goes in as it is, whatever it is. */
  readonly metadata: unknown;
}

function seed(events: readonly Seed[]): void {
  log.seed(
    events.map(({ data, metadata, ...rest }) => ({
      ...rest,
      contentType: "application/json",
      data: Buffer.from(textOf(data)),
      metadata: Buffer.from(textOf(metadata)),
    })),
  );
}

const textOf = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
