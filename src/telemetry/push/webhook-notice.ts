/** From best to worst. */
const GRADES = ["ok", "attention", "degraded", "down"] as const;

type Grade = (typeof GRADES)[number];

/** The state of a service, as notifications report it. */
export interface NoticeState {
  readonly grade: Grade;
  /** The health causes, by stable code and name: `circuit-open crm`. */
  readonly causes: readonly string[];
  /** Null while there is no count. */
  readonly deadLetters: number | null;
}

/** What the receiver was last notified of. */
export interface NotifiedState {
  readonly grade: Grade;
  readonly deadLetters: number | null;
}

/** Holds no reasons and nothing of an event: the receiver can belong to a third party. */
export interface Notice {
  readonly type: "outbox-relay.health-worsened" | "outbox-relay.dead-letters" | "outbox-relay.notifications-resumed";
  readonly text: string;
  readonly health: { readonly before: Grade; readonly now: Grade };
  readonly causes: readonly string[];
  readonly deadLetters: { readonly new: number; readonly total: number | null };
}

const CAUSES_MAX = 20;

/**
 * The notice for the change since the last notification; null when there is none. The first check only records the
 * state: a restart is not news. Improvements are recorded too, so that the next decline is news again.
 */
export function noticeOf(
  notified: NotifiedState | null,
  now: NoticeState,
): { readonly notice: Notice | null; readonly notified: NotifiedState } {
  const { causes, grade } = now;
  const next: NotifiedState = { grade, deadLetters: now.deadLetters ?? notified?.deadLetters ?? null };
  if (notified === null) return { notice: null, notified: next };
  const isWorse = GRADES.indexOf(grade) > GRADES.indexOf(notified.grade);
  const died =
    notified.deadLetters === null || now.deadLetters === null ? 0 : Math.max(0, now.deadLetters - notified.deadLetters);
  if (!isWorse && died === 0) return { notice: null, notified: next };
  const dead = died === 0 ? "" : `${died} new dead ${died === 1 ? "letter" : "letters"}, ${now.deadLetters} in all`;
  const worse = isWorse
    ? `health ${notified.grade} → ${grade}${causes.length === 0 ? "" : ` (${causes.join(", ")})`}`
    : "";
  const notice: Notice = {
    type: isWorse ? "outbox-relay.health-worsened" : "outbox-relay.dead-letters",
    text: [worse, dead].filter((part) => part !== "").join("; "),
    health: { before: notified.grade, now: grade },
    causes: causes.slice(0, CAUSES_MAX),
    deadLetters: { new: died, total: now.deadLetters },
  };
  return { notice, notified: next };
}

/** For a receiver that missed notifications about something that is over now. */
export function resumedNotice({ causes, deadLetters, grade }: NoticeState): Notice {
  return {
    type: "outbox-relay.notifications-resumed",
    text: `notifications arrive again after failures; health is ${grade}`,
    health: { before: grade, now: grade },
    causes: causes.slice(0, CAUSES_MAX),
    deadLetters: { new: 0, total: deadLetters },
  };
}
