import { type BullmqPublisherOptions, queueFault, type Removal } from "../../publishers/bullmq/bullmq-config.ts";
import { parseAddress } from "./address.ts";
import { type DestinationScheme, refuseExactlyOnce, type WrittenDestination } from "./destination-scheme.ts";
import { redisServer, redisWarnings } from "./redis-server.ts";

const PARAMETERS = ["queue", "prefix", "name", "attempts", "removeOnComplete", "removeOnFail"];

/** BullMQ queues, from `bullmq+redis://` addresses. */
export const bullmqScheme: DestinationScheme = {
  kind: "bullmq",
  schemes: ["bullmq+redis", "bullmq+rediss"],
  example: "bullmq+redis://host:port/0?queue=NAME",
  configure(written) {
    const address = parseAddress(written, { defaultPort: 6_379, parameters: PARAMETERS });
    if (address === null) return null;
    refuseExactlyOnce(written, "BullMQ");
    const server = redisServer(address, written);
    const jobs = jobOptions(address.parameters, address.hosts.length, written);
    if (server === null || jobs === null) return null;
    const { name } = written;
    const options: BullmqPublisherOptions = { name, ...server, ...jobs };
    return {
      kind: "bullmq",
      name,
      addresses: server.hosts,
      isExactlyOnce: false,
      warnings: redisWarnings(server),
      options,
      async open() {
        const { loadBullmq } = await import("../../publishers/bullmq/bullmq-client.ts");
        await loadBullmq();
        const { bullmqPublisher } = await import("../../publishers/bullmq/bullmq-publisher.ts");
        return bullmqPublisher(options);
      },
    };
  },
};

function jobOptions(
  parameters: ReadonlyMap<string, string>,
  hosts: number,
  { problems, setting }: WrittenDestination,
): Partial<BullmqPublisherOptions> | null {
  const problemsBefore = problems.length;
  const addProblem = (what: string) => void problems.push(`${setting} ${what}`);
  const removal = (name: string): Removal | undefined => {
    const text = parameters.get(name);
    if (text === undefined) return undefined;
    if (/^(?:true|false)$/.test(text)) return text === "true";
    if (/^\d{1,9}$/.test(text)) return Number(text);
    addProblem(`has the parameter ${name}: write true, false or how many jobs to keep`);
    return undefined;
  };
  const queue = parameters.get("queue");
  const fault = queue === undefined ? null : queueFault(queue);
  if (fault !== null) addProblem(`has the parameter queue: ${fault}`);
  const attempts = parameters.get("attempts");
  if (attempts !== undefined && !/^[1-9]\d{0,4}$/.test(attempts)) {
    addProblem("has the parameter attempts: write a whole number from 1 to 99999");
  }
  if (hosts > 1) addProblem("has several hosts: BullMQ needs a single server, not a cluster");
  const given = Object.entries({
    queue,
    prefix: parameters.get("prefix"),
    jobName: parameters.get("name"),
    attempts: attempts === undefined ? undefined : Number(attempts),
    removeOnComplete: removal("removeOnComplete"),
    removeOnFail: removal("removeOnFail"),
  }).filter(([, value]) => value !== undefined);
  return problems.length > problemsBefore ? null : Object.fromEntries(given);
}
