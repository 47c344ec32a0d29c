import { Module } from "@nestjs/common";
import { TerminusModule } from "@nestjs/terminus";
import { createRelay, migrateUp, openDatabase, postgresSource, stdoutPublisher } from "../../src/index.ts"; // in your project: "outbox-relay"
import { OutboxModule, type RelayInProcess } from "../../src/nestjs/index.ts"; // in your project: "outbox-relay/nestjs"
import { DATABASE_URL, DatabaseModule } from "./database.module.ts";
import { HealthController } from "./health.controller.ts";
import { OrdersController } from "./orders.controller.ts";
import { OrdersService } from "./orders.service.ts";
import { type ShopEvents, shopSchemas } from "./shop-events.ts";

const TABLE = "shop.outbox";

/** It has connections of its own, so that neither waits for the other. */
async function startRelay(url: string): Promise<RelayInProcess> {
  const database = openDatabase({ url });
  await migrateUp(database);
  const relay = createRelay({
    sources: [postgresSource({ database, table: TABLE })],
    destinations: { broker: stdoutPublisher() },
  });
  return { relay, close: () => database.close() };
}

@Module({
  imports: [
    DatabaseModule,
    TerminusModule,
    OutboxModule.forRootAsync<ShopEvents>({
      inject: [DATABASE_URL],
      useFactory: (url: string) => ({ table: TABLE, schemas: shopSchemas, relay: () => startRelay(url) }),
    }),
  ],
  controllers: [OrdersController, HealthController],
  providers: [OrdersService],
})
export class AppModule {}
