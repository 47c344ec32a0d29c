import type { ComponentChildren } from "preact";
import type { ApiError } from "./api.ts";
import { Button, CliButton } from "./button.tsx";
import { Icon } from "./icons.tsx";
import type { Asked } from "./use-api.ts";

interface ErrorBoxProps {
  readonly error: ApiError;
  readonly retry?: (() => void) | undefined;
  /** The same question by the command line, which may say more. */
  readonly command?: string | undefined;
}

/** The one form in which anything that went wrong is told. */
export function ErrorBox({ error, retry, command }: ErrorBoxProps) {
  return (
    <div class="error-box" role="alert">
      <Icon name="cross" />
      <div>
        <strong>{error.message}</strong>
        {error.fix !== null && <p>{error.fix}</p>}
        <p class="faint">
          <code>{error.code}</code>
          {error.status > 0 && ` · HTTP ${error.status}`}
        </p>
        {(retry !== undefined || command !== undefined) && (
          <div class="row">
            {retry !== undefined && (
              <Button icon="retry" onClick={retry}>
                Try again
              </Button>
            )}
            {command !== undefined && <CliButton command={command} />}
          </div>
        )}
      </div>
    </div>
  );
}

/** While neither the service nor its database can answer: said once, calmly; every screen asks again by itself. */
function Outage({ error, retry }: { readonly error: ApiError; readonly retry: () => void }) {
  // Everything else is told by the service itself, or by what stands before it.
  const isService = !error.code.startsWith("DATABASE_");
  return (
    <div class="outage" role="alert">
      <Icon name="unplug" />
      <h2>{isService ? "The service does not answer" : "The database does not answer"}</h2>
      <p>{error.status === 0 ? "This page keeps trying, and goes on by itself." : error.message}</p>
      {error.fix !== null && <p>{error.fix}</p>}
      {!isService && (
        <p class="faint">
          Nothing is lost meanwhile: what was written is in the outbox, and goes out when the database is back. This
          page keeps trying.
        </p>
      )}
      <div class="row">
        <Button icon="retry" onClick={retry}>
          Try now
        </Button>
        <CliButton command="outbox-relay doctor" />
      </div>
    </div>
  );
}

interface AnswerProps<T> {
  readonly asked: Asked<T>;
  readonly command?: string | undefined;
  /** Instead of the grey bars while nothing is there yet. */
  readonly waiting?: ComponentChildren;
  children(data: T): ComponentChildren;
}

/** The answer to a question, or how it stands: grey bars, an error, an outage. Old data is dimmed while it is renewed. */
export function Answer<T>({ asked, command, waiting, children }: AnswerProps<T>) {
  const { data, error, reload } = asked;
  if (data === null) {
    if (error === null) return <>{waiting ?? <Skeleton />}</>;
    if (error.isPassing) return <Outage error={error} retry={reload} />;
    return <ErrorBox error={error} retry={reload} command={command} />;
  }
  return (
    <>
      {error !== null && !error.isPassing && <ErrorBox error={error} retry={reload} command={command} />}
      {children(data)}
    </>
  );
}

export function Skeleton({ lines = 6 }: { readonly lines?: number }) {
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, at) => (
        <div key={at} />
      ))}
    </div>
  );
}

interface EmptyProps {
  readonly title: string;
  readonly icon?: Parameters<typeof Icon>[0]["name"];
  readonly children?: ComponentChildren;
}

/** Nothing to show: why, and what to do about it, if that is a pity. */
export function Empty({ title, icon = "check", children }: EmptyProps) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <strong>{title}</strong>
      {children !== undefined && <div>{children}</div>}
    </div>
  );
}
