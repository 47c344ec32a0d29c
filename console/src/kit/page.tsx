import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { LiveState } from "./event-stream.ts";

interface PageProps {
  readonly title: string;
  /** Over the title, the way back: label and address. */
  readonly back?: readonly [label: string, href: string] | undefined;
  readonly badge?: ComponentChildren;
  readonly lead?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Page({ title, back, badge, lead, actions, children }: PageProps) {
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
            {title} {badge}
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
  readonly actions?: ComponentChildren;
  /** Without padding, for tables. */
  readonly isFlush?: boolean | undefined;
  readonly children: ComponentChildren;
}

export function Card({ title, note, actions, isFlush = false, children }: CardProps) {
  return (
    <section class={isFlush ? "card flush" : "card"} aria-label={title}>
      {(title !== undefined || actions !== undefined) && (
        <header>
          <h2>{title}</h2>
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

/** Links, because which tab is open belongs into the address. */
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
  live: ["live", "What is shown follows by itself"],
  connecting: ["connecting", "The stream is being opened"],
  stale: ["stale", "The stream is broken: what is shown may be old. It is being opened again."],
  off: ["off", "Not followed"],
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

/** Names with values. A value of null is left out. */
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
