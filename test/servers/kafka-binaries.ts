import { execFile } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { cached, cacheFolder } from "../../src/dev/embedded-postgres.ts";

export const kafkaVersion = "4.1.0";

const run = promisify(execFile);

/** What the tests call, and the Debian package that brings it. */
const programs: Readonly<Record<string, string>> = {
  java: "openjdk-17-jre-headless",
  mvn: "maven",
  kcat: "kcat",
  openssl: "openssl",
};

const artifacts = [
  ["org.apache.kafka", "kafka_2.13", kafkaVersion],
  ["org.apache.kafka", "kafka-tools", kafkaVersion],
  ["org.slf4j", "slf4j-simple", "1.7.36"],
];

/** The class path of Kafka's server and tools. Fetched once per machine; java, mvn, kcat and openssl are there too then. */
export async function kafkaClassPath(): Promise<string> {
  await installPrograms();
  const folder = await cached(`kafka-${kafkaVersion}`, fetchJars);
  return join(folder, "*");
}

async function fetchJars(target: string): Promise<void> {
  const dependencies = artifacts.map(
    ([group, artifact, version]) =>
      `<dependency><groupId>${group}</groupId><artifactId>${artifact}</artifactId><version>${version}</version></dependency>`,
  );
  const pom = `${target}-pom.xml`;
  writeFileSync(
    pom,
    `<project><modelVersion>4.0.0</modelVersion><groupId>outbox-relay</groupId><artifactId>kafka</artifactId>
      <version>1</version><dependencies>${dependencies.join("")}</dependencies></project>`,
  );
  const copy = ["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", `-DoutputDirectory=${target}`];
  // One at a time: Maven's own cache is not made for several processes.
  await run("flock", [join(cacheFolder(), "maven.lock"), ...copy]).catch((cause) => {
    throw new Error("Maven could not fetch Kafka; the tests with Kafka do not run without it", { cause });
  });
}

let installed: Promise<void> | undefined;

/** Once per process: the programs do not go away while the tests run. */
function installPrograms(): Promise<void> {
  installed ??= install();
  return installed;
}

async function install(): Promise<void> {
  const missing = missingPackages();
  if (missing.length === 0) return;
  const advice = `The tests with Kafka do not run without: apt-get install ${missing.join(" ")}`;
  if (process.getuid?.() !== 0) throw new Error(advice);
  // The lock makes parallel test files wait for one installation; policy-rc.d keeps Debian from starting a service.
  const script = `policy=/usr/sbin/policy-rc.d
    if ! test -e $policy; then printf '#!/bin/sh\\nexit 101\\n' >$policy; chmod +x $policy; trap "rm -f $policy" EXIT; fi
    wanted() { command -v "$1" >/dev/null || echo "$2"; }
    packages="${Object.entries(programs)
      .map(([program, pack]) => `$(wanted ${program} ${pack})`)
      .join(" ")}"
    test -z "$(echo $packages)" && exit 0
    apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages`;
  await run("flock", [join(cacheFolder(), "install.lock"), "sh", "-ec", script]).catch((cause) => {
    throw new Error(advice, { cause });
  });
  const stillMissing = missingPackages();
  if (stillMissing.length > 0) throw new Error(advice);
}

function missingPackages(): string[] {
  const folders = (process.env.PATH ?? "").split(delimiter);
  return Object.entries(programs)
    .filter(([program]) => !folders.some((folder) => existsSync(join(folder, program))))
    .map(([, pack]) => pack);
}
