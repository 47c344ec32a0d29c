import type { ComponentChildren } from "preact";
import type { ApiError } from "./api.ts";
import { Button, CliButton } from "./button.tsx";
import { Icon } from "./icons.tsx";
import { PlainText } from "./plain-text.tsx";
import type { Asked } from "./use-api.ts";

const MESSAGE_CHARS = 2_000;

interface ErrorBoxProps {
  readonly error: ApiError;
  readonly retry?: (() => void) | undefined;
  /** The CLI command for the same query, which may show more detail. */
  readonly command?: string | undefined;
}

/** How the console shows every error. */
export function ErrorBox({ error, retry, command }: ErrorBoxProps) {
  return (
    <div class="error-box" role="alert">
      <Icon name="cross" />
      <div>
        <strong>
          <PlainText text={error.message} charsMax={MESSAGE_CHARS} />
        </strong>
        {error.fix !== null && <p>{error.fix}</p>}
        <p class="faint">
          <code>{error.code}</code>
          {error.status > 0 && ` · HTTP ${error.status}`}
        </p>
        {(retry !== undefined || command !== undefined) && (
          <div class="row">
            {retry !== undefined && (
              <Button icon="retry" onClick={retry}>
                Retry
              </Button>
            )}
            {command !== undefined && <CliButton command={command} />}
          </div>
        )}
      </div>
    </div>
  );
}

/** Shown while the service or its database is unavailable. Every screen retries by itself. */
function Outage({ error, retry }: { readonly error: ApiError; readonly retry: () => void }) {
  // Any other code comes from the service itself or from a proxy.
  const isService = !error.code.startsWith("DATABASE_");
  return (
    <div class="outage" role="alert">
      <Icon name="unplug" />
      <h2>{isService ? "The service does not answer" : "The database does not answer"}</h2>
      <p>{error.status === 0 ? "This page retries and continues automatically." : error.message}</p>
      {error.fix !== null && <p>{error.fix}</p>}
      {!isService && (
        <p class="faint">
          No events are lost: they are in the outbox, and the relay delivers them when the database is back. This page
          retries automatically.
        </p>
      )}
      <div class="row">
        <Button icon="retry" onClick={retry}>
          Retry now
        </Button>
        <CliButton command="outbox-relay doctor" />
      </div>
    </div>
  );
}

interface AnswerProps<T> {
  readonly asked: Asked<T>;
  readonly command?: string | undefined;
  /** Shown instead of the skeleton until the first answer. */
  readonly waiting?: ComponentChildren;
  children(data: T): ComponentChildren;
}

/** Renders the answer of a request, or its state: skeleton, error or outage. */
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

/** An empty list: why it is empty, and what to do about it. */
export function Empty({ title, icon = "check", children }: EmptyProps) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <strong>{title}</strong>
      {children !== undefined && <div>{children}</div>}
    </div>
  );
}
