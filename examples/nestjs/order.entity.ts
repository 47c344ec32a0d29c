import { Column, Entity, PrimaryColumn } from "typeorm";

@Entity({ schema: "shop", name: "orders" })
export class Order {
  @PrimaryColumn({ type: "text" })
  id!: string;

  @Column({ type: "int" })
  total!: number;
}
