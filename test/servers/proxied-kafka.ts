import { after, before } from "node:test";
import { type KafkaOptions, type KafkaServer, startKafka } from "./kafka.ts";
import { type KafkaProxy, type KafkaProxyOptions, startKafkaProxy } from "./kafka-proxy.ts";

type ProxiedKafkaOptions = Pick<KafkaOptions, "properties"> & Pick<KafkaProxyOptions, "decide">;

export interface ProxiedKafka {
  readonly kafka: KafkaServer;
  /** In front of `kafka.brokers`, not of `kafka.directBrokers`. */
  readonly proxy: KafkaProxy;
}

/** One broker behind a proxy for all tests of a file or a suite; there is none before the first of them runs. */
export function proxiedKafka({ properties = {}, ...more }: ProxiedKafkaOptions = {}): ProxiedKafka {
  let kafka: KafkaServer;
  let proxy: KafkaProxy;
  before(async () => {
    const advertise = async (targetPort: number) => {
      proxy = await startKafkaProxy({ targetPort, ...more });
      return proxy.port;
    };
    kafka = await startKafka({ properties, advertise });
  });
  after(async () => {
    await kafka?.[Symbol.asyncDispose]();
    await proxy?.[Symbol.asyncDispose]();
  });
  return {
    get kafka() {
      return kafka;
    },
    get proxy() {
      return proxy;
    },
  };
}
