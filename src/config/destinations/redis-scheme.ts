import type { z } from "zod";
import type { RedisPublisherOptions } from "../../publishers/redis/redis-config.ts";
import { duration, wholeNumber } from "../settings/value-types.ts";
import { parseAddress } from "./address.ts";
import { type DestinationScheme, refuseExactlyOnce, type WrittenDestination } from "./destination-scheme.ts";
import { redisServer, redisWarnings } from "./redis-server.ts";

const DEDUPE = duration({ minMs: 1_000, maxMs: 30 * 24 * 3_600_000 });

/** Redis streams, from `redis://` addresses. */
export const redisScheme: DestinationScheme = {
  kind: "redis",
  schemes: ["redis", "rediss"],
  example: "redis://host:port/0",
  configure(written) {
    const address = parseAddress(written, {
      defaultPort: 6_379,
      parameters: ["maxlen", "dedupe", "prefix", "wait"],
    });
    if (address === null) return null;
    refuseExactlyOnce(written, "redis");
    const server = redisServer(address, written);
    const streams = streamOptions(address.parameters, address.hosts.length, written);
    if (server === null || streams === null) return null;
    const { name } = written;
    const options: RedisPublisherOptions = { name, ...server, ...streams };
    return {
      kind: "redis",
      name,
      addresses: server.hosts,
      isExactlyOnce: false,
      warnings: redisWarnings(server),
      options,
      async open() {
        const { loadRedis } = await import("../../publishers/redis/redis-client.ts");
        await loadRedis();
        const { redisPublisher } = await import("../../publishers/redis/redis-publisher.ts");
        return redisPublisher(options);
      },
    };
  },
};

type StreamOptions = Pick<RedisPublisherOptions, "dedupeMs" | "maxlen" | "prefix" | "replicas">;

function streamOptions(
  parameters: ReadonlyMap<string, string>,
  hosts: number,
  { problems, setting }: WrittenDestination,
): StreamOptions | null {
  const problemsBefore = problems.length;
  const addProblem = (what: string) => void problems.push(`${setting} ${what}`);
  const read = <T>(name: string, type: z.ZodType<T>): T | undefined => {
    const text = parameters.get(name);
    if (text === undefined) return undefined;
    const { data, error } = type.safeParse(text);
    for (const { message } of error?.issues ?? []) addProblem(`has the parameter ${name}: ${message}`);
    return data;
  };
  const dedupe = parameters.get("dedupe") === "off" ? 0 : read("dedupe", DEDUPE);
  const maxlen = read("maxlen", wholeNumber(1, Number.MAX_SAFE_INTEGER));
  const replicas = read("wait", wholeNumber(0, 100));
  const prefix = parameters.get("prefix");
  if (prefix !== undefined && /[{}]/.test(prefix)) addProblem("has a prefix with braces: remove them");
  if (hosts > 1) addProblem("has several hosts: clusters are not supported, name one server");
  if (problems.length > problemsBefore) return null;
  return {
    ...(dedupe === undefined ? {} : { dedupeMs: dedupe }),
    ...(maxlen === undefined ? {} : { maxlen }),
    ...(prefix === undefined ? {} : { prefix }),
    ...(replicas === undefined ? {} : { replicas }),
  };
}
