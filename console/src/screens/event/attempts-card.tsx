import { useState } from "preact/hooks";
import { StateBadge } from "../../kit/badge.tsx";
import { Button } from "../../kit/button.tsx";
import { Empty } from "../../kit/error-box.tsx";
import { Ago } from "../../kit/figures.tsx";
import { plural } from "../../kit/format.ts";
import { Card } from "../../kit/page.tsx";
import { LongText, PlainText } from "../../kit/plain-text.tsx";
import type { Attempt, ShownEvent } from "../../kit/types.ts";
import { Waterfall } from "./waterfall.tsx";

const SHOWN = 5;
/** Characters of an error shown until it is expanded. */
const REASON_CHARS = 2_000;

/** Every recorded attempt, newest first, with its timing and its error. */
export function AttemptsCard({ event }: { readonly event: ShownEvent }) {
  const [isAll, setAll] = useState(false);
  const attempts = event.delivery.toReversed();
  const shown = isAll ? attempts : attempts.slice(0, SHOWN);
  return (
    <Card title="Attempts" note={attempts.length === 0 ? undefined : `${attempts.length} recorded, newest first`}>
      {attempts.length === 0 ? (
        <Nothing state={event.state} />
      ) : (
        <ol class="attempts">
          {shown.map((attempt, at) => (
            <OneAttempt
              key={`${attempt.pipeline}${attempt.at}`}
              attempt={attempt}
              isSameError={at > 0 && attempt.reason === attempts[at - 1]?.reason}
            />
          ))}
        </ol>
      )}
      {shown.length < attempts.length && (
        <Button kind="quiet" icon="down" onClick={() => setAll(true)}>
          {`Show ${plural(attempts.length - shown.length, "earlier one")}`}
        </Button>
      )}
    </Card>
  );
}

interface OneAttemptProps {
  readonly attempt: Attempt;
  /** The error is the same as that of the attempt above. */
  readonly isSameError: boolean;
}

function OneAttempt({ attempt, isSameError }: OneAttemptProps) {
  const { at, attempt: number, errorType, instance, outcome, pipeline, reason, target } = attempt;
  return (
    <li>
      <div class="row">
        <strong>{outcome === "delivered" && number <= 0 ? "Attempt" : `Attempt ${number}`}</strong>
        <StateBadge state={outcome} />
        <span class="soft">
          <Ago at={at} />
        </span>
        <span class="spring" />
        <span class="faint">
          {pipeline}
          {target !== null && (
            <>
              {" → "}
              <span class="mono">
                <PlainText text={target} />
              </span>
            </>
          )}
          {instance !== null && (
            <>
              {" · by "}
              <PlainText text={instance} />
            </>
          )}
        </span>
      </div>
      <Waterfall attempt={attempt} label={`Timing of attempt ${number}`} />
      {reason !== null && isSameError && <p class="faint">Same error as above.</p>}
      {reason !== null && !isSameError && (
        <p class="reason">
          <LongText
            text={errorType === null || reason.includes(errorType) ? reason : `${errorType}: ${reason}`}
            charsMax={REASON_CHARS}
          />
        </p>
      )}
    </li>
  );
}

function Nothing({ state }: { readonly state: ShownEvent["state"] }) {
  if (state === "pending" || state === "parked") return <Empty title="No attempt yet" icon="clock" />;
  return (
    <Empty title="No attempt recorded" icon="dot">
      Failures always are. Of what went well, as many a second as <code>RECORD_DELIVERED</code> says, and for as long as{" "}
      <code>RECORD_RETENTION</code>.
    </Empty>
  );
}
