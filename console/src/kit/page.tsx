import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { LiveState } from "./event-stream.ts";
import { Hint, type HintWord } from "./hint.tsx";

interface PageProps {
  readonly title: string;
  /** Rendered instead of the title if the title comes from an event: it may be long or need markup. */
  readonly heading?: ComponentChildren;
  /** The back link above the title: label and address. */
  readonly back?: readonly [label: string, href: string] | undefined;
  readonly badge?: ComponentChildren;
  readonly lead?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Page({ title, heading = title, back, badge, lead, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · outbox-relay`;
  }, [title]);
  return (
    <div class="page">
      <header class="page-head">
        <div>
          {back !== undefined && (
            <a class="back" href={back[1]}>
              ← {back[0]}
            </a>
          )}
          <h1>
            {heading} {badge}
          </h1>
        </div>
        {actions !== undefined && <div class="actions">{actions}</div>}
        {lead !== undefined && <p class="lead">{lead}</p>}
      </header>
      {children}
    </div>
  );
}

interface CardProps {
  readonly title?: string | undefined;
  readonly note?: ComponentChildren;
  /** The explanation of a term in the title. */
  readonly hint?: HintWord | undefined;
  readonly actions?: ComponentChildren;
  /** Without padding, for tables. */
  readonly isFlush?: boolean | undefined;
  readonly children: ComponentChildren;
}

export function Card({ title, note, hint, actions, isFlush = false, children }: CardProps) {
  return (
    <section class={isFlush ? "card flush" : "card"} aria-label={title}>
      {(title !== undefined || actions !== undefined) && (
        <header>
          <h2>{title}</h2>
          {hint !== undefined && <Hint word={hint} />}
          {note !== undefined && <span class="note">{note}</span>}
          <span class="spring" />
          {actions}
        </header>
      )}
      {children}
    </section>
  );
}

interface Tab {
  readonly label: string;
  readonly href: string;
  readonly isOpen: boolean;
  readonly count?: number | null | undefined;
}

/** Tabs are links, because the open tab is part of the address. */
export function Tabs({ label, tabs }: { readonly label: string; readonly tabs: readonly Tab[] }) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map((tab) => (
        <a key={tab.label} href={tab.href} aria-current={tab.isOpen ? "page" : undefined}>
          {tab.label}
          {tab.count !== undefined && tab.count !== null && <span class="count">{tab.count}</span>}
        </a>
      ))}
    </nav>
  );
}

const LIVE_TEXTS: Readonly<Record<LiveState, readonly [word: string, title: string]>> = {
  live: ["live", "Updates automatically"],
  connecting: ["connecting", "Opening the stream"],
  stale: ["stale", "The stream is interrupted: the data may be old. Reconnecting."],
  off: ["off", "No live updates"],
};

export function LiveMark({ state }: { readonly state: LiveState }) {
  const [word, title] = LIVE_TEXTS[state];
  return (
    <span class={`live ${state}`} title={title} role="status">
      <i aria-hidden="true" />
      {word}
    </span>
  );
}

/** Names with values. Null values are omitted. */
export function KeyValues({ items }: { readonly items: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="key-values">
      {items
        .filter(([, value]) => value !== null && value !== undefined)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
