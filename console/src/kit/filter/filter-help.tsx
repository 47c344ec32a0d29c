import { FILTER_FIELDS } from "./filter-suggest.ts";

/** Reference of the filter language. */
export function FilterHelp() {
  return (
    <section class="filter-help" aria-label="Filter help">
      <dl>
        {FILTER_FIELDS.map(([field, help, example]) => (
          <div key={field}>
            <dt>
              <code>{example}</code>
            </dt>
            <dd>{help}</dd>
          </div>
        ))}
        <div>
          <dt>
            <code>7f0c…</code>
          </dt>
          <dd>a bare word: matches an id, key or correlation id, and keys that contain it</dd>
        </div>
      </dl>
      <p>
        An event must match all terms. Put a value with spaces or colons in <code>"quotes"</code> and escape a quote as{" "}
        <code>\"</code>; in quotes a <code>*</code> is literal. Payload fields work on the events screen, not on dead
        letters. Times are <code>2026-01-31</code>, <code>2026-01-31T12:00</code> (UTC) or <code>2h</code> (two hours
        ago).
      </p>
    </section>
  );
}
