import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { basename } from "node:path";
import { describe, test } from "node:test";
import { startKafka } from "./kafka.ts";
import { withAdmin } from "./kafka-admin.ts";
import { followTopic, readTopic } from "./kafka-reader.ts";
import { writeTopic } from "./kafka-writer.ts";
import { markedProcesses } from "./scratch.ts";
import { startTcpProxy, type TcpProxy } from "./tcp-proxy.ts";
import { until } from "./until.ts";

describe("Kafka", () => {
  test("starts as asked and keeps what was acknowledged over kill -9 and a stop", async () => {
    await using kafka = await startKafka({ properties: { "message.max.bytes": 2_000 } });
    await kafka.createTopic("t", { partitions: 2, config: { "retention.ms": 3_600_000 } });
    await writeTopic(kafka.brokers, "t", ["one", "two"]);
    await assert.rejects(writeTopic(kafka.brokers, "t", ["x".repeat(3_000)]));
    const settings = await withAdmin(kafka.brokers, (admin) =>
      admin.describeConfigs({ resources: [{ resourceType: 2, resourceName: "t", configurationKeys: null }] }),
    );
    assert.equal(settings[0]?.configs.find(({ name }) => name === "retention.ms")?.value, "3600000");
    for (const end of [() => kafka.kill(), () => kafka.stop()]) {
      await end();
      await kafka.restart();
      const records = await readTopic(kafka.brokers, "t");
      assert.deepEqual(records.map(({ value }) => String(value)).sort(), ["one", "two"]);
    }
    await kafka.deleteTopic("t");
    assert.deepEqual(await withAdmin(kafka.brokers, (admin) => admin.listTopics()), []);
  });

  test("answers nothing while it is paused and everything afterwards", async () => {
    const [first, second] = await Promise.all([startKafka(), startKafka()]);
    await using kafka = first;
    await using other = second;
    await Promise.all([kafka.createTopic("t"), other.createTopic("t")]);
    await kafka.pause();
    let answered = false;
    const writing = writeTopic(kafka.brokers, "t", ["late"]).finally(() => {
      answered = true;
    });
    // A whole round trip to another broker shows that an answer would have had the time to arrive.
    await writeTopic(other.brokers, "t", ["prompt"]);
    assert.equal(answered, false);
    kafka.resume();
    await writing;
    assert.equal((await readTopic(kafka.brokers, "t")).length, 1);
  });

  test("tells clients the address of the proxy in front of it, and itself does without the proxy", async () => {
    await using started = new AsyncDisposableStack();
    let proxy: TcpProxy | undefined;
    await using kafka = await startKafka({
      advertise: async (port) => {
        proxy = started.use(await startTcpProxy(port));
        return proxy.port;
      },
    });
    assert.equal(kafka.brokers, `127.0.0.1:${proxy?.port}`);
    await kafka.createTopic("t");
    await using follower = await followTopic(kafka.brokers, "t");
    await writeTopic(kafka.brokers, "t", ["through"]);
    await follower.waitFor(1);
    proxy?.refuse(true);
    proxy?.cut();
    await writeTopic(kafka.directBrokers, "t", ["past"]);
    assert.equal((await readTopic(kafka.directBrokers, "t")).length, 2);
    assert.equal(follower.records.length, 1);
    proxy?.refuse(false);
    await follower.waitFor(2);
  });

  test("says why when it cannot start", async () => {
    await assert.rejects(startKafka({ properties: { "log.retention.ms": "nonsense" } }), /nonsense/);
  });
});

test("leaves no process or folder behind when the test process is killed while the broker is paused and read", async () => {
  const program = `
    import { startKafka } from ${JSON.stringify(import.meta.resolve("./kafka.ts"))};
    import { followTopic } from ${JSON.stringify(import.meta.resolve("./kafka-reader.ts"))};
    const kafka = await startKafka();
    await kafka.createTopic("t");
    await followTopic(kafka.brokers, "t");
    await kafka.pause();
    process.stdout.write(kafka.folder + " " + kafka.brokers);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [output] = await once(child.stdout, "data");
  const [folder = "", brokers = ""] = String(output).split(" ");
  assert.equal(markedProcesses(basename(folder)).length, 1);
  assert.equal(markedProcesses(brokers).length, 1);

  child.kill("SIGKILL");
  await until("the folder is gone", () => !existsSync(folder));
  // A process of this size takes a moment to go after it was killed.
  await until("the broker is gone", () => markedProcesses(basename(folder)).length === 0);
  await until("the reader is gone", () => markedProcesses(brokers).length === 0);
});
