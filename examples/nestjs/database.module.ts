import { Global, Inject, Module, type OnApplicationShutdown } from "@nestjs/common";
import { DataSource } from "typeorm";
import { outboxTableSql } from "../../src/outbox/index.ts"; // in your project: "outbox-relay/outbox"
import { Order } from "./order.entity.ts";

export const DATABASE_URL = Symbol("the address of the database");

/** In production let a migration create the tables. */
const TABLES = `${outboxTableSql("shop.outbox")}
create table if not exists shop.orders (id text primary key, total int not null);`;

async function openDataSource(url: string): Promise<DataSource> {
  const source = await new DataSource({ type: "postgres", url, entities: [Order] }).initialize();
  await source.query(TABLES);
  return source;
}

@Global()
@Module({
  providers: [
    { provide: DATABASE_URL, useFactory: () => process.env.DATABASE_URL ?? "" },
    { provide: DataSource, useFactory: openDataSource, inject: [DATABASE_URL] },
  ],
  exports: [DATABASE_URL, DataSource],
})
export class DatabaseModule implements OnApplicationShutdown {
  constructor(@Inject(DataSource) private readonly source: DataSource) {}

  async onApplicationShutdown(): Promise<void> {
    await this.source.destroy();
  }
}
