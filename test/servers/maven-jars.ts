import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { cached, cacheFolder } from "../../src/dev/embedded-postgres.ts";
import { installPrograms } from "./debian-programs.ts";

const run = promisify(execFile);

export const JAVA = { java: "openjdk-17-jre-headless", mvn: "maven" };

type Artifact = readonly [group: string, artifact: string, version: string];

/** The class path of these artifacts and all they need. Fetched once per machine under this name and version. */
export async function mavenClassPath(name: string, version: string, artifacts: readonly Artifact[]): Promise<string> {
  await installPrograms(name, JAVA);
  const folder = await cached(`${name}-${version}`, (target) => fetchJars(name, artifacts, target));
  return join(folder, "*");
}

async function fetchJars(name: string, artifacts: readonly Artifact[], target: string): Promise<void> {
  console.log(`fetching ${name} with Maven, once per machine`);
  const dependencies = artifacts.map(
    ([group, artifact, version]) =>
      `<dependency><groupId>${group}</groupId><artifactId>${artifact}</artifactId><version>${version}</version></dependency>`,
  );
  const pom = `${target}-pom.xml`;
  writeFileSync(
    pom,
    `<project><modelVersion>4.0.0</modelVersion><groupId>outbox-relay</groupId><artifactId>${name}</artifactId>
      <version>1</version><dependencies>${dependencies.join("")}</dependencies></project>`,
  );
  const copy = ["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", `-DoutputDirectory=${target}`];
  // One at a time: Maven's own cache is not made for several processes.
  await run("flock", [join(cacheFolder(), "maven.lock"), ...copy]).catch((cause) => {
    throw new Error(`Maven could not fetch ${name}; the tests with it do not run without it`, { cause });
  });
}
