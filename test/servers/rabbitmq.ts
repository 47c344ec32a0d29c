import { execFile } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { connect } from "amqplib";
import { installPrograms } from "./debian-programs.ts";
import { freePort } from "./free-port.ts";
import { startPlainServer } from "./plain-server.ts";
import type { ServerProcess } from "./server-process.ts";

const run = promisify(execFile);

/** A private RabbitMQ on 127.0.0.1, with the user guest. */
export type RabbitServer = ServerProcess & {
  readonly port: number;
  /** Without a virtual host or parameters: `amqp://guest:guest@127.0.0.1:PORT`. */
  readonly url: string;
  /** Runs `rabbitmqctl` with these arguments. */
  control(...args: readonly string[]): Promise<void>;
};

const PROGRAMS = "/usr/lib/rabbitmq/bin";

export const RABBITMQ = { "rabbitmq-server": "rabbitmq-server" };

/** `settings` are lines of its rabbitmq.conf. */
export async function startRabbit(settings: readonly string[] = []): Promise<RabbitServer> {
  await installPrograms("RabbitMQ", RABBITMQ);
  const [port, distributionPort, nameServerPort] = [await freePort(), await freePort(), await freePort()];
  const server = await startPlainServer({
    name: "rabbitmq",
    prepare(folder) {
      const lines = [`listeners.tcp.1 = 127.0.0.1:${port}`, ...CONFIGURATION, ...settings];
      writeFileSync(join(folder, "rabbitmq.conf"), `${lines.join("\n")}\n`);
      writeFileSync(join(folder, "enabled_plugins"), "[].\n");
      writeFileSync(join(folder, "env.conf"), "");
      // Erlang's own name server outlives the broker. Started from here, it bears the folder's name and is found.
      symlinkSync("/usr/bin/epmd", join(folder, "epmd"));
    },
    command: (folder) => ({
      program: "/bin/sh",
      args: ["-c", `"$0/epmd" -address 127.0.0.1 -daemon; exec ${PROGRAMS}/rabbitmq-server`, folder],
      env: environmentOf(folder, port, distributionPort, nameServerPort),
    }),
    isReady: () => answers(port),
  });
  return Object.assign(server, {
    port,
    url: `amqp://guest:guest@127.0.0.1:${port}`,
    async control(...args: readonly string[]) {
      const env = environmentOf(server.folder, port, distributionPort, nameServerPort);
      await run(`${PROGRAMS}/rabbitmqctl`, ["-n", env.RABBITMQ_NODENAME, ...args], { env });
    },
  });
}

const CONFIGURATION = [
  "vm_memory_high_watermark.absolute = 512MB",
  "disk_free_limit.absolute = 50MB",
  "log.console = true",
  "log.console.level = warning",
  "log.file = false",
];

function environmentOf(folder: string, port: number, distributionPort: number, nameServerPort: number) {
  return {
    PATH: process.env.PATH,
    // Holds the cookie by which nodes know each other.
    HOME: folder,
    ERL_EPMD_ADDRESS: "127.0.0.1",
    ERL_EPMD_PORT: String(nameServerPort),
    RABBITMQ_NODENAME: "rabbit@localhost",
    RABBITMQ_NODE_IP_ADDRESS: "127.0.0.1",
    RABBITMQ_NODE_PORT: String(port),
    RABBITMQ_DIST_PORT: String(distributionPort),
    RABBITMQ_MNESIA_BASE: join(folder, "mnesia"),
    RABBITMQ_LOG_BASE: join(folder, "log"),
    RABBITMQ_PID_FILE: join(folder, "pid"),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, "enabled_plugins"),
    RABBITMQ_CONF_ENV_FILE: join(folder, "env.conf"),
    RABBITMQ_CONFIG_FILE: join(folder, "rabbitmq"),
    RABBITMQ_GENERATED_CONFIG_DIR: join(folder, "generated"),
    RABBITMQ_FEATURE_FLAGS_FILE: join(folder, "feature_flags"),
    // One scheduler that sleeps when it has nothing to do: by default Erlang's spin for a while, on every core. The last
    // flag is read by nothing: it only marks the command line.
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: `+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none -folder ${folder}`,
  };
}

async function answers(port: number): Promise<boolean> {
  const connection = await connect(`amqp://guest:guest@127.0.0.1:${port}`, { timeout: 2_000 });
  await connection.close();
  return true;
}
