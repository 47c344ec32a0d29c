import type { Redis } from "ioredis";
import type { Transaction } from "./bullmq-client.ts";

/** Fewer are not worth sending the text of the script for. */
const BULK_MIN = 8;
/** Of one length, so that one can stand where another stood. */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

interface AlikeJob {
  readonly id: string;
  readonly data: object;
}

/** Stands in for a transaction of BullMQ's, and keeps what it would have sent. */
export class RecordedCall {
  #name = "";
  #args: readonly (string | Buffer)[] = [];

  /** The only thing that BullMQ asks of a transaction to which it adds a job. */
  runCommand(name: string, args: readonly (string | Buffer)[]): this {
    this.#name = name;
    this.#args = args;
    return this;
  }

  /**
   * Runs BullMQ's own script once for each of the jobs, with what it was called with for the first: a command per job
   * would cost the client and the server more than the job itself. False when that cannot be done: nothing was sent.
   */
  playForAll(jobs: readonly AlikeJob[], transaction: Transaction, { scriptsSet }: Pick<Redis, "scriptsSet">): boolean {
    const { lua, numberOfKeys } = (scriptsSet as Readonly<Record<string, Partial<Script>>>)[this.#name] ?? {};
    const [sample] = jobs;
    if (lua === undefined || numberOfKeys === undefined || sample === undefined) return false;
    const [args, data, options, ...more] = this.#args.slice(numberOfKeys);
    const isAsExpected = Buffer.isBuffer(args) && Buffer.isBuffer(options) && typeof data === "string";
    if (!isAsExpected || more.length > 0) return false;
    const keys = this.#args.slice(0, numberOfKeys) as string[];
    const parts = [args, options].map((packed) => hexAround(packed, sample.id));
    // Elsewhere, as in the name of the queue, it means something else.
    if (parts.some(({ length }) => length !== 2)) return false;
    const all = jobs.flatMap((job) => [job.id, JSON.stringify(job.data)]);
    transaction.eval(looped(lua), numberOfKeys, ...keys, JSON.stringify(parts), JSON.stringify(all));
    return true;
  }
}

interface Script {
  readonly lua: string;
  readonly numberOfKeys: number;
}

export function isBulk(jobs: readonly AlikeJob[]): boolean {
  return jobs.length >= BULK_MIN && jobs.every(({ id }) => UUID.test(id));
}

/** What stands before and behind the place of the id. */
function hexAround(packed: Buffer, id: string): string[] {
  return packed
    .toString("latin1")
    .split(id)
    .map((part) => Buffer.from(part, "latin1").toString("hex"));
}

/** ARGV as JSON: the packed arguments and options around the place of the id, then id and data of every job. */
function looped(lua: string): string {
  return `
local function once(KEYS, ARGV)
${lua}
end
local function bytes(digits)
  return (string.gsub(digits, '..', function(pair) return string.char(tonumber(pair, 16)) end))
end
local args, options = unpack(cjson.decode(ARGV[1]))
for _, parts in ipairs({ args, options }) do
  for i, digits in ipairs(parts) do parts[i] = bytes(digits) end
end
local jobs = cjson.decode(ARGV[2])
for i = 1, #jobs, 2 do
  local id = jobs[i]
  once(KEYS, { table.concat(args, id), jobs[i + 1], table.concat(options, id) })
end
`;
}
