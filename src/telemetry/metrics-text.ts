/** Metrics as somebody who asked for them gets them. */
export interface MetricsText {
  readonly contentType: string;
  readonly text: string;
}

/** Whoever says nothing is a person with a browser or curl, and reads either. */
export function wantsOpenMetrics(accept: string): boolean {
  const wanted = accept.toLowerCase();
  if (wanted.includes("application/openmetrics-text")) return true;
  return !wanted.includes("text/plain");
}

/** The older format names a counter's family like its samples, and has no end mark. */
export function prometheusText(openMetrics: string): string {
  const counters = new Set([...openMetrics.matchAll(/^# TYPE (\S+) counter$/gm)].map(([, name]) => name));
  return openMetrics
    .replace(/^# EOF\n/m, "")
    .replace(/^# (HELP|TYPE) (\S+)/gm, (line, word: string, name: string) =>
      counters.has(name) ? `# ${word} ${name}_total` : line,
    );
}
