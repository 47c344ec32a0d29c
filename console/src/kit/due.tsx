import { useNow } from "./clock.ts";
import { agoText, timeText } from "./format.ts";

/** When something is to happen; once that is past, it happens as soon as there is room. */
export function Due({ at }: { readonly at: string | null }) {
  const now = useNow();
  if (at === null) return <span class="faint">–</span>;
  const time = Date.parse(at);
  return (
    <time dateTime={at} title={timeText(at)}>
      {time <= now ? "now" : agoText(time, now)}
    </time>
  );
}
