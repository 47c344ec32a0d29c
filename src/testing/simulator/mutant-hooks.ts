import { registerHooks } from "node:module";
import { applyMutant } from "./mutant.ts";
import { mutantNamed } from "./mutants.ts";

/** Loaded first in a worker: plants the bug that the environment names when the engine is loaded. */
const mutant = mutantNamed(process.env.SIMULATOR_MUTANT ?? "");
const target = new URL(`../../${mutant.file}`, import.meta.url).href;

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (url !== target) return loaded;
    if (loaded.source === undefined || loaded.source === null)
      throw new Error(`${url} has no source to plant a bug into.`);
    const source =
      typeof loaded.source === "string" ? loaded.source : Buffer.from(loaded.source as Uint8Array).toString();
    return { ...loaded, source: applyMutant(mutant, source) };
  },
});
