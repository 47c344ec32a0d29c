// What `prisma generate` writes for the schema of this folder.
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { generatePrismaClient } from "../servers/prisma-client.ts";

const SCHEMA = "prisma/schema.prisma";

if (process.argv[2] !== "generate") throw new Error(`prisma ${process.argv[2]} is not known here`);
const output = /^\s*output\s*=\s*"([^"]+)"$/m.exec(readFileSync(SCHEMA, "utf8"))?.[1];
if (output === undefined) throw new Error(`${SCHEMA} names no output`);
await generatePrismaClient(resolve(SCHEMA), resolve(dirname(SCHEMA), output));
