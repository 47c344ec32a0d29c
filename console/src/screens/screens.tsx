import type { ComponentType } from "preact";
import { Empty } from "../kit/error-box.tsx";
import { Page } from "../kit/page.tsx";
import { matchPath, placeHash, type Query } from "../kit/place.ts";
import { AuditScreen } from "./audit.tsx";
import { CorrelationScreen } from "./correlation.tsx";
import { DeadLettersScreen } from "./dead-letters.tsx";
import { DestinationScreen } from "./destination.tsx";
import { DestinationsScreen } from "./destinations.tsx";
import { EventScreen } from "./event.tsx";
import { EventsScreen } from "./events.tsx";
import { InstancesScreen } from "./instances.tsx";
import { KeysScreen } from "./keys.tsx";
import { OverviewScreen } from "./overview.tsx";
import { PipelinesScreen } from "./pipelines.tsx";
import { ReplayScreen } from "./replay.tsx";
import { ReplaysScreen } from "./replays.tsx";
import { SettingsScreen } from "./settings.tsx";
import { SubscribersScreen } from "./subscribers.tsx";

/** The properties of every screen: they come only from the address. */
export interface ScreenProps {
  /** The `:names` of its path. */
  readonly params: Query;
  readonly query: Query;
}

const SCREENS: readonly (readonly [path: string, Screen: ComponentType<ScreenProps>])[] = [
  ["/", OverviewScreen],
  ["/pipelines", PipelinesScreen],
  ["/destinations", DestinationsScreen],
  ["/destinations/:name", DestinationScreen],
  ["/subscribers", SubscribersScreen],
  ["/instances", InstancesScreen],
  ["/events", EventsScreen],
  ["/events/:id", EventScreen],
  ["/correlations/:id", CorrelationScreen],
  ["/dead-letters", DeadLettersScreen],
  ["/keys", KeysScreen],
  ["/replays", ReplaysScreen],
  ["/replays/:id", ReplayScreen],
  ["/audit", AuditScreen],
  ["/settings", SettingsScreen],
];

export function screenAt(path: string): { readonly Screen: ComponentType<ScreenProps>; readonly params: Query } {
  for (const [pattern, Screen] of SCREENS) {
    const params = matchPath(pattern, path);
    if (params !== null) return { Screen, params };
  }
  return { Screen: Nowhere, params: {} };
}

function Nowhere() {
  return (
    <Page title="Not found">
      <Empty title="This screen does not exist" icon="help">
        <a href={placeHash("/")}>Back to the overview</a>
      </Empty>
    </Page>
  );
}
