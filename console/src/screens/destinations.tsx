import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { CliButton } from "../kit/button.tsx";
import { ChooseBar, ChooseBox } from "../kit/choose.tsx";
import { command } from "../kit/command.ts";
import { Answer, Empty } from "../kit/error-box.tsx";
import { SearchField, SelectField } from "../kit/fields.tsx";
import { plural } from "../kit/format.ts";
import { Page } from "../kit/page.tsx";
import { placeHash } from "../kit/place.ts";
import { useMay } from "../kit/session.ts";
import type { Destination, Overview } from "../kit/types.ts";
import { useApi } from "../kit/use-api.ts";
import { ViewsMenu } from "../kit/views-menu.tsx";
import { useLive } from "../shell/live-overview.ts";
import { DestinationBulk } from "./destinations/destination-actions.tsx";
import { DestinationTile } from "./destinations/destination-tile.tsx";
import type { ScreenProps } from "./screens.tsx";

export function DestinationsScreen({ query }: ScreenProps) {
  const { q = "", state = "" } = query;
  const asked = useApi<Overview>("/overview");
  const newest = { ...asked, data: useLive().overview ?? asked.data };
  const present = (newest.data?.destinations ?? []).map((it) => it.state);
  const states = [...new Set<string>([...present, ...(state === "" ? [] : [state])])].sort();
  return (
    <Page
      title="Destinations"
      actions={
        <>
          <ViewsMenu />
          <CliButton command={command("status")} />
        </>
      }
    >
      <div class="filters">
        <SearchField label="Destinations whose name contains" name="q" value={q} placeholder="part of a name" />
        <SelectField
          label="State"
          name="state"
          value={state}
          options={[["", "all"], ...states.map((it) => [it, it] as const)]}
        />
      </div>
      <Answer asked={newest}>
        {({ destinations }) => {
          const shown = destinations.filter(
            (it) =>
              it.destination.toLowerCase().includes(q.trim().toLowerCase()) && (state === "" || it.state === state),
          );
          return destinations.length > 0 && shown.length === 0 ? (
            <Empty title="No destinations match" icon="search">
              <a href={placeHash("/destinations")}>Show all {plural(destinations.length, "destination")}</a>
            </Empty>
          ) : (
            <ChosenTiles destinations={shown} />
          );
        }}
      </Answer>
    </Page>
  );
}

/** Selected destinations are paused and resumed together. */
function ChosenTiles({ destinations }: { readonly destinations: readonly Destination[] }) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const canChoose = useMay("operator") && destinations.length > 1;
  const shown = destinations.map(({ destination }) => destination);
  return (
    <>
      {canChoose && (
        <ChooseBar what="destination" shown={shown} chosen={chosen} onChoose={setChosen}>
          <DestinationBulk destinations={shown.filter((it) => chosen.has(it))} done={() => setChosen(new Set())} />
        </ChooseBar>
      )}
      <DestinationTiles
        destinations={destinations}
        choose={(name) => canChoose && <ChooseBox name={name} chosen={chosen} onChoose={setChosen} />}
      />
    </>
  );
}

interface TilesProps {
  readonly destinations: readonly Destination[];
  /** The checkbox of a tile, if tiles can be selected. */
  choose?(name: string): ComponentChildren;
}

export function DestinationTiles({ destinations, choose }: TilesProps) {
  if (destinations.length === 0) {
    return (
      <Empty title="No destination yet" icon="pipelines">
        A destination appears here once a relay runs with a route to it.
      </Empty>
    );
  }
  return (
    <div class="destinations">
      {destinations.map((it) => (
        <DestinationTile key={it.destination} it={it} choose={choose?.(it.destination)} />
      ))}
    </div>
  );
}
