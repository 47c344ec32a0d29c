import type { AnyEvents, EventOf } from "../outbox/event-map.ts";
import type { Outbox } from "../outbox/outbox.ts";
import type { TransactionHandle } from "../postgres/transaction-handle.ts";

/** The outbox as a provider: inject it by this class, or as `OutboxService<ShopEvents>` with an event map. */
export class OutboxService<Events extends object = AnyEvents> implements Outbox<Events> {
  readonly #outbox: Outbox<Events>;

  constructor(outbox: Outbox<Events>) {
    this.#outbox = outbox;
  }

  /** As `Outbox.write`: in the transaction of TypeORM's EntityManager, Prisma's `tx`, or any other supported handle. */
  write(handle: TransactionHandle, events: EventOf<Events> | readonly EventOf<Events>[]): Promise<number> {
    return this.#outbox.write(handle, events);
  }
}
