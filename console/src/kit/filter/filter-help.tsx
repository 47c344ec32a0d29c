import { FILTER_FIELDS } from "./filter-suggest.ts";

/** All of the language, where it is needed. */
export function FilterHelp() {
  return (
    <section class="filter-help" aria-label="How filters are written">
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
          <dd>a bare word: an id, a key or a correlation id</dd>
        </div>
      </dl>
      <p>
        All words must be true of an event. A value with spaces or colons stands in <code>"quotes"</code>, a quote in it
        is written <code>\"</code>. Times are <code>2026-01-31</code>, <code>2026-01-31T12:00</code> (UTC) or{" "}
        <code>2h</code>, for so long ago.
      </p>
    </section>
  );
}
