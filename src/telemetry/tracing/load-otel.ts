import { RelayError } from "../../core/errors.ts";

const PACKAGES =
  "@opentelemetry/api @opentelemetry/sdk-trace @opentelemetry/resources @opentelemetry/exporter-trace-otlp-http";

async function importAll() {
  const [api, sdk, resources, otlp] = await Promise.all([
    import("@opentelemetry/api"),
    import("@opentelemetry/sdk-trace"),
    import("@opentelemetry/resources"),
    import("@opentelemetry/exporter-trace-otlp-http"),
  ]);
  return { api, sdk, resources, otlp };
}

/** The OpenTelemetry packages. */
export type Otel = Awaited<ReturnType<typeof importAll>>;

/** Loads the optional peer dependency. Without it the error says what to install. */
export async function loadOtel(importPackages = importAll): Promise<Otel> {
  return await importPackages().catch((cause: unknown) => {
    const what = "OTEL_EXPORTER_OTLP_ENDPOINT is set, but OpenTelemetry is not installed. Install it";
    throw new RelayError("CONFIG_INVALID", `${what}: npm install ${PACKAGES}.`, { cause });
  });
}
