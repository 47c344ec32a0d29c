import { BadRequestException, Body, Controller, Inject, Post } from "@nestjs/common";
import { isRelayError } from "../../src/outbox/index.ts"; // in your project: "outbox-relay/outbox"
import { OrdersService } from "./orders.service.ts";

@Controller("orders")
export class OrdersController {
  constructor(@Inject(OrdersService) private readonly orders: OrdersService) {}

  @Post()
  async place(@Body() { id, total }: { id: string; total: number }): Promise<{ placed: string }> {
    await this.orders.place(id, total).catch((error: unknown) => {
      throw isRelayError(error, "EVENT_INVALID") ? new BadRequestException(error.message) : error;
    });
    return { placed: id };
  }
}
