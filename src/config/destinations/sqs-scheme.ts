import {
  accountFault,
  endpointFault,
  queueFault,
  regionFault,
  type SqsPublisherOptions,
} from "../../publishers/sqs/sqs-config.ts";
import { publishMsOf } from "../lease-timing.ts";
import { parseAddress } from "./address.ts";
import { type DestinationScheme, refuseExactlyOnce, type WrittenDestination } from "./destination-scheme.ts";

/** SQS queues, from `sqs://` addresses. */
export const sqsScheme: DestinationScheme = {
  kind: "sqs",
  schemes: ["sqs"],
  example: "sqs://region/queue",
  configure(written) {
    refuseExactlyOnce(written, "SQS");
    const options = sqsOptions(written);
    if (options === null) return null;
    return {
      kind: "sqs",
      name: written.name,
      addresses: [hostOf(options)],
      isExactlyOnce: false,
      warnings: [],
      options,
      async open() {
        const { loadSqs } = await import("../../publishers/sqs/sqs-client.ts");
        await loadSqs();
        const { sqsPublisher } = await import("../../publishers/sqs/sqs-publisher.ts");
        return sqsPublisher(options);
      },
    };
  },
};

/** Null when `problems` say what is wrong. */
function sqsOptions(written: WrittenDestination): SqsPublisherOptions | null {
  const { name, problems, setting, settings } = written;
  const address = parseAddress(written, { defaultPort: 443, parameters: ["endpoint", "account"] });
  if (address === null) return null;
  const region = address.hosts[0]!.replace(/:\d+$/, "");
  const endpoint = address.parameters.get("endpoint") ?? settings.SQS_ENDPOINT;
  const account = address.parameters.get("account");
  const faults = [queueFault(address.path), regionFault(region), accountFault(account), endpointFault(endpoint)];
  if (address.username !== null) {
    faults.push("remove the keys from the address: the SDK reads them from AWS_ACCESS_KEY_ID, a profile or a role");
  }
  const found = faults.filter((fault) => fault !== null);
  for (const fault of found) problems.push(`${setting}: ${fault}; write sqs://region/queue`);
  if (found.length > 0) return null;
  const publishMs = publishMsOf(settings);
  return {
    name,
    region,
    queue: address.path,
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(account === undefined ? {} : { account }),
    connectTimeoutMs: Math.round(publishMs * 0.4),
    sendTimeoutMs: Math.round(publishMs * 0.4),
    requestTimeoutMs: Math.round(publishMs * 0.8),
  };
}

function hostOf({ endpoint, region }: SqsPublisherOptions): string {
  const url = URL.parse(endpoint ?? `https://sqs.${region}.amazonaws.com`);
  return `${url?.hostname}:${url?.port || (url?.protocol === "http:" ? 80 : 443)}`;
}
