// The program's entry. It limits the heap first, before anything large is loaded, because that re-executes the program.
import { limitHeap } from "../service/heap-limits.ts";

const args = process.argv.slice(2);
// Options can precede the command.
if (args.includes("run")) limitHeap();
const { main } = await import("./main.ts");
await main(args);
