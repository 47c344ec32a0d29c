// Where the command begins. The heap is limited before anything large is loaded, because that starts the program anew.
import { limitHeap } from "./heap-limits.ts";

const args = process.argv.slice(2);
// Options may stand before the command.
if (args.includes("run")) limitHeap();
const { main } = await import("./main.ts");
await main(args);
