import { z } from "zod";

export interface ShopEvents {
  "order.placed": { id: string; total: number };
}

/** What an event has to look like, whoever writes it. */
export const shopSchemas = {
  "order.placed": z.object({ id: z.string(), total: z.number().positive() }),
};
