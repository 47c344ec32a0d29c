import { unreachableError } from "../../core/connection-cause.ts";
import { connectAny, loadNats } from "./nats-client.ts";
import { type NatsPublisherOptions, natsSettings } from "./nats-config.ts";
import { connectionReason } from "./nats-errors.ts";

/** The subjects that no stream, or not the configured one, captures. Creates no streams. */
export async function missingSubjects(
  options: NatsPublisherOptions,
  subjects: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const nats = await loadNats();
  const settings = natsSettings(options);
  const timeout = settings.connectTimeoutMs;
  const connection = await connectAny(nats, settings, 0, AbortSignal.timeout(timeout * settings.servers.length)).catch(
    (error: unknown) => {
      throw unreachableError(connectionReason(settings, error), error);
    },
  );
  const missing = new Map<string, string>();
  try {
    for (const subject of subjects) {
      const answer = await connection.request("$JS.API.STREAM.NAMES", JSON.stringify({ subject }), { timeout });
      const { error, streams } = answer.json<{ error?: { description: string }; streams?: string[] | null }>();
      if (error !== undefined) throw new Error(error.description);
      const [found] = streams ?? [];
      if (found === undefined) missing.set(subject, "no stream takes it");
      else if (settings.stream !== null && !streams?.includes(settings.stream)) {
        missing.set(subject, `the stream ${found} takes it, not ${settings.stream}`);
      }
    }
    return missing;
  } finally {
    await connection.close();
  }
}
