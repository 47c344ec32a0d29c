import type { Figure, ScenarioOptions } from "./figure.ts";

/** The parts whose names were asked for, one after the other; their figures carry the name of the part. */
export async function measureParts(
  { only, say }: ScenarioOptions,
  parts: Readonly<Record<string, () => Promise<Figure[]>>>,
): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const [name, run] of Object.entries(parts)) {
    if (!name.includes(only)) continue;
    say(`measuring: ${name}`);
    for (const figure of await run()) figures.push({ ...figure, name: `${name}: ${figure.name}` });
  }
  return figures;
}
