import { Inject, Injectable } from "@nestjs/common";
import { DataSource } from "typeorm";
import { OutboxService } from "../../src/nestjs/index.ts"; // in your project: "outbox-relay/nestjs"
import { Order } from "./order.entity.ts";
import type { ShopEvents } from "./shop-events.ts";

@Injectable()
export class OrdersService {
  constructor(
    @Inject(DataSource) private readonly source: DataSource,
    @Inject(OutboxService) private readonly outbox: OutboxService<ShopEvents>,
  ) {}

  /** The order and its event: both are there, or neither. */
  async place(id: string, total: number): Promise<void> {
    await this.source.transaction(async (manager) => {
      await manager.insert(Order, { id, total });
      await this.outbox.write(manager, { type: "order.placed", key: id, payload: { id, total } });
    });
  }
}
