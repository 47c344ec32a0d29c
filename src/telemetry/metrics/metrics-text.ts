/** The response to a scrape. */
export interface MetricsText {
  readonly contentType: string;
  readonly text: string;
}

/** Without a preference the caller is a person with a browser or curl, and can read either format. */
export function wantsOpenMetrics(accept: string): boolean {
  const wanted = accept.toLowerCase();
  if (wanted.includes("application/openmetrics-text")) return true;
  return !wanted.includes("text/plain");
}

/** Converts OpenMetrics to the older Prometheus format: counter families end in `_total`, and there is no end mark. */
export function prometheusText(openMetrics: string): string {
  const counters = new Set([...openMetrics.matchAll(/^# TYPE (\S+) counter$/gm)].map(([, name]) => name));
  return openMetrics
    .replace(/^# EOF\n/m, "")
    .replace(/^# (HELP|TYPE) (\S+)/gm, (line, word: string, name: string) =>
      counters.has(name) ? `# ${word} ${name}_total` : line,
    );
}
