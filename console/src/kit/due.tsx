import { useNow } from "./clock.ts";
import { agoText, timeText } from "./format.ts";

/** When something is due. "now" once the time has passed: it happens as soon as the relay has capacity. */
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
