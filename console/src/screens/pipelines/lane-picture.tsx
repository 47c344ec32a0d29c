import { plural } from "../../kit/format.ts";
import type { Lane } from "../../kit/types.ts";

const PER_ROW = 16;
const SIZE = 11;
const GAP = 3;

/** A relay has the same colour in every lane. */
export function ownersOf(lanes: readonly Lane[]): readonly string[] {
  return [...new Set(lanes.flatMap(({ owner }) => (owner === null ? [] : [owner.id])))].sort();
}

/** One square per lane in the colour of its owner; hollow without an owner, crossed if the owner's lease expired. */
export function LanePicture({ lanes }: { readonly lanes: readonly Lane[] }) {
  if (lanes.length === 0) return <span class="faint">no lanes yet</span>;
  const owners = ownersOf(lanes);
  const free = lanes.filter(({ owner }) => owner === null).length;
  const text = `${plural(lanes.length, "lane")}, ${plural(owners.length, "owner")}${free > 0 ? `, ${free} free` : ""}`;
  const columns = Math.min(PER_ROW, lanes.length);
  const rows = Math.ceil(lanes.length / PER_ROW);
  const step = SIZE + GAP;
  return (
    <figure class="lanes">
      <svg width={columns * step} height={rows * step} role="img" aria-label={text}>
        {lanes.map((it, at) => {
          const x = (at % PER_ROW) * step + 0.5;
          const y = Math.floor(at / PER_ROW) * step + 0.5;
          const owner = it.owner === null ? "free" : `owner-${owners.indexOf(it.owner.id) % 6}`;
          return (
            <g key={it.lane} class={owner}>
              <title>{titleOf(it)}</title>
              <rect x={x} y={y} width={SIZE} height={SIZE} rx={2.5} />
              {it.owner !== null && !it.owner.isAlive && <path d={`M${x + 3} ${y + 3}l5 5m0 -5l-5 5`} />}
            </g>
          );
        })}
      </svg>
      <figcaption>{text}</figcaption>
    </figure>
  );
}

function titleOf({ lane, owner, crashes }: Lane): string {
  const who = owner === null ? "no owner" : `${owner.name ?? owner.id}${owner.isAlive ? "" : " (gone)"}`;
  return `lane ${lane}: ${who}${crashes > 0 ? `, ${plural(crashes, "crash", "crashes")}` : ""}`;
}
