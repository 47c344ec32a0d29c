import { installPrograms } from "./debian-programs.ts";
import { mavenClassPath } from "./maven-jars.ts";

export const KAFKA = { kcat: "kcat", openssl: "openssl" };
export const kafkaVersion = "4.1.0";

let installed: Promise<void> | undefined;

/** The class path of Kafka's server and tools. Fetched once per machine; java, mvn, kcat and openssl are there too then. */
export async function kafkaClassPath(): Promise<string> {
  // Once per process: the programs do not go away while the tests run.
  installed ??= installPrograms("Kafka", KAFKA);
  await installed;
  return await mavenClassPath("kafka", kafkaVersion, [
    ["org.apache.kafka", "kafka_2.13", kafkaVersion],
    ["org.apache.kafka", "kafka-tools", kafkaVersion],
    ["org.slf4j", "slf4j-simple", "1.7.36"],
  ]);
}
