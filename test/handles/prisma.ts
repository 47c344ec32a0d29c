import { PrismaPg } from "@prisma/adapter-pg";
import type { PrismaTransaction } from "../../src/postgres/handles/prisma-handle.ts";
import { generatePrismaClient, writePrismaProject } from "../servers/prisma-client.ts";
import { createScratch } from "../servers/scratch.ts";
import type { OpenLibrary } from "./library.ts";

const SCHEMA = `generator client {
  provider = "prisma-client"
  output   = "./generated"
}
datasource db {
  provider = "postgresql"
  schemas  = ["shop"]
}
model Order {
  id    String @id
  total Int
  @@map("orders")
  @@schema("shop")
}
`;

interface Transaction extends PrismaTransaction {
  readonly order: { create(options: { data: { id: string; total: number } }): Promise<unknown> };
}

interface Client {
  $connect(): Promise<void>;
  $disconnect(): Promise<void>;
  $transaction(work: (tx: Transaction) => Promise<unknown>): Promise<unknown>;
  $extends(extension: object): Client;
}

export const openPrisma: OpenLibrary = async (url) => {
  const scratch = createScratch("prisma", "memory");
  await generatePrismaClient(writePrismaProject(scratch.path, SCHEMA), `${scratch.path}/generated`);
  const { PrismaClient } = (await import(`${scratch.path}/generated/client.ts`)) as {
    PrismaClient: new (options: { adapter: PrismaPg }) => Client;
  };
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url, max: 3 }) });
  const extended = prisma.$extends({ model: {} });
  const insert = (tx: Transaction) => (id: string) => tx.order.create({ data: { id, total: 1 } });
  return {
    transaction: (work) => extended.$transaction((tx) => work(tx, insert(tx))),
    refused: [
      [prisma, /Prisma client/],
      [extended, /Prisma client/],
    ],
    [Symbol.asyncDispose]: async () => {
      await prisma.$disconnect();
      await scratch.remove();
    },
  };
};
