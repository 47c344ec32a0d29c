import type { IconName } from "../kit/icons.tsx";

/** The sections of the navigation. The shortcut is g, then `letter`. */
export interface Section {
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  readonly letter: string;
  /** In the bottom bar of a phone; the others are behind its last button. */
  readonly isFirst?: boolean;
}

export const SECTIONS: readonly (readonly [group: string, sections: readonly Section[]])[] = [
  [
    "Watch",
    [
      { path: "/", title: "Overview", icon: "overview", letter: "o", isFirst: true },
      { path: "/pipelines", title: "Pipelines", icon: "pipelines", letter: "p", isFirst: true },
      { path: "/destinations", title: "Destinations", icon: "target", letter: "t" },
      { path: "/subscribers", title: "Subscribers", icon: "subscribers", letter: "s" },
      { path: "/instances", title: "Instances", icon: "instances", letter: "i" },
    ],
  ],
  [
    "Events",
    [
      { path: "/events", title: "Events", icon: "events", letter: "e", isFirst: true },
      { path: "/dead-letters", title: "Dead letters", icon: "dead", letter: "d", isFirst: true },
      { path: "/keys", title: "Keys", icon: "keys", letter: "k" },
      { path: "/replays", title: "Replays", icon: "replays", letter: "r" },
    ],
  ],
  [
    "Service",
    [
      { path: "/audit", title: "Audit", icon: "audit", letter: "a" },
      { path: "/settings", title: "Settings", icon: "settings", letter: "c" },
    ],
  ],
];

export const ALL_SECTIONS: readonly Section[] = SECTIONS.flatMap(([, sections]) => sections);

/** The section of a path: `/events/42` belongs to Events. */
export function sectionOf(path: string): Section | null {
  return ALL_SECTIONS.find((it) => it.path === path || (it.path !== "/" && path.startsWith(`${it.path}/`))) ?? null;
}
