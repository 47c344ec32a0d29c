import type { Clock } from "../../core/clock.ts";
import { endedSessions, type NewAuditEntry, noteAction } from "../../operations/audit/audit.ts";
import type { Author } from "../../operations/audit/author.ts";
import type { OperationTarget } from "../../operations/events/event-source.ts";
import { transaction } from "../../postgres/transaction.ts";

const REFUSED_MAX = 5;
const WINDOW_MS = 60_000;
const STATEMENT_TIMEOUT_MS = 5_000;

/**
 * Records logins and refused logins in the audit. A login does not wait for it and succeeds without it: users must be
 * able to log in especially when the database is down.
 */
export class LoginNotes {
  readonly #clock: Clock;
  readonly #target: () => OperationTarget;
  #untilMs = 0;
  #noted = 0;
  #skipped = 0;

  constructor(clock: Clock, target: () => OperationTarget) {
    this.#clock = clock;
    this.#target = target;
  }

  loggedIn(author: Author, detail: object): void {
    void this.#note(author, { action: "login", detail });
  }

  loggedOut(author: Author, detail: object): void {
    void this.#note(author, { action: "logout", detail });
  }

  /** Hashes of the sessions that ended in the last hours. */
  async ended(): Promise<readonly string[]> {
    return await endedSessions(this.#target().database);
  }

  /** Records a few refusals per minute; the next one says how many were skipped. */
  refused(via: "api" | "console", detail: object): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs >= this.#untilMs) {
      this.#untilMs = nowMs + WINDOW_MS;
      this.#noted = 0;
    }
    if (this.#noted >= REFUSED_MAX) {
      this.#skipped += 1;
      return;
    }
    this.#noted += 1;
    const skipped = this.#skipped === 0 ? {} : { notNotedBefore: this.#skipped };
    this.#skipped = 0;
    void this.#note({ by: "nobody", via }, { action: "login-refused", detail: { ...detail, ...skipped } });
  }

  async #note(author: Author, entry: NewAuditEntry): Promise<void> {
    try {
      const { database } = this.#target();
      const settings = { context: { doing: "noting a login" }, statementTimeoutMs: STATEMENT_TIMEOUT_MS };
      await transaction(database.pool, settings, (session) => noteAction(session, database, author, entry));
    } catch {
      // Without a database the entry is lost, and the login still succeeds.
    }
  }
}
