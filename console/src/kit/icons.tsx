/** Drawn on a 16-pixel grid with one stroke width. Every state has its own shape, so colour is never the only cue. */
const PATHS = {
  overview: "M2 13.5h12M3.5 11V7M7 11V3.5M10.5 11V6M14 11V8.5",
  pipelines: "M1.5 5h5a2.5 2.5 0 0 1 2.5 2.5v1a2.5 2.5 0 0 0 2.5 2.5h3M12 8.5l2.5 2.5-2.5 2.5M1.5 11H5",
  events: "M2 4h12M2 8h12M2 12h7",
  dead: "M8 1.8 14.6 13.4H1.4ZM8 6.2v3.4M8 11.4v.2",
  replays: "M2.5 8a5.5 5.5 0 1 0 1.8-4.1M2.2 2v3h3",
  keys: "M6 10a3.2 3.2 0 1 1 0-4.2L14 5.8v3h-2v-1.4H9.6M4.2 8h.1",
  subscribers: "M3 3v10M3 5h7.5L9 6.8l1.5 1.7H3M6 13H1.5",
  instances: "M2 2.5h12v4.2H2ZM2 9.3h12v4.2H2ZM4.5 4.6h.1M4.5 11.4h.1",
  audit: "M4 1.8h8v12.4H4ZM6.2 5h3.6M6.2 8h3.6M6.2 11h2",
  target: "M8 1.8a6.2 6.2 0 1 1 0 12.4A6.2 6.2 0 0 1 8 1.8ZM8 5.4a2.6 2.6 0 1 1 0 5.2 2.6 2.6 0 0 1 0-5.2Z",
  settings: "M2 4.5h6M11 4.5h3M2 11.5h3M8 11.5h6M9.5 2.8v3.4M6.5 9.8v3.4",
  check: "M3 8.5 6.5 12 13 4.5",
  cross: "M4 4l8 8M12 4l-8 8",
  clock: "M8 1.8a6.2 6.2 0 1 1 0 12.4A6.2 6.2 0 0 1 8 1.8ZM8 4.6V8l2.4 1.6",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  play: "M5 3.2 12.2 8 5 12.8Z",
  retry: "M13.5 8A5.5 5.5 0 1 1 12 4.2M13.8 2v3h-3",
  park: "M3.5 7.2h9v6.3h-9ZM5.5 7V5a2.5 2.5 0 0 1 5 0v2",
  dot: "M8 6.4a1.6 1.6 0 1 1 0 3.2 1.6 1.6 0 0 1 0-3.2Z",
  bin: "M2.8 4.2h10.4M6.2 4V2.4h3.6V4M4.2 4.4l.6 9.2h6.4l.6-9.2",
  copy: "M5.5 5.5h8v8h-8ZM3 10.5H2.5v-8h8V3",
  terminal: "M2 3h12v10H2ZM4.5 6l2 2-2 2M8.5 10h3",
  search: "M7 2.2a4.8 4.8 0 1 1 0 9.6 4.8 4.8 0 0 1 0-9.6ZM10.6 10.6 14 14",
  left: "M10 3.5 5.5 8l4.5 4.5",
  right: "M6 3.5 10.5 8 6 12.5",
  down: "M3.5 6 8 10.5 12.5 6",
  sun: "M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6ZM8 1v1.4M8 13.6V15M1 8h1.4M13.6 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  moon: "M13.4 9.6A5.8 5.8 0 0 1 6.4 2.6a5.8 5.8 0 1 0 7 7Z",
  auto: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2ZM8 2v12M8 5.5h5M8 8h6M8 10.5h5",
  menu: "M2 4.5h12M2 8h12M2 11.5h12",
  bolt: "M9 1.5 3.5 9H8l-1 5.5L12.5 7H8Z",
  unplug: "M5.5 6.5 3.6 8.4a3 3 0 0 0 4.2 4.2l1.7-1.9M10.5 9.5l1.9-1.9a3 3 0 0 0-4.2-4.2L6.5 5.3M2 2l12 12",
  limit: "M2.5 12.5a6.4 6.4 0 1 1 11 0M8 9.2l3-3.6",
  help: "M8 1.8a6.2 6.2 0 1 1 0 12.4A6.2 6.2 0 0 1 8 1.8ZM6.2 6.2a1.9 1.9 0 1 1 2.6 2c-.6.3-.8.6-.8 1.2M8 11.4v.2",
  bell: "M3 11.5h10M4.2 11.5V7a3.8 3.8 0 0 1 7.6 0v4.5M6.6 13.6h2.8",
  bellOff: "M3 11.5h8.5M4.2 11.5V7a3.8 3.8 0 0 1 6.4-2.8M11.8 7.4v1.8M6.6 13.6h2.8M2.5 2.5l11 11",
  exit: "M6 2.5H2.5v11H6M6.5 8h7.5M11 5l3 3-3 3",
  person: "M8 2.2a2.7 2.7 0 1 1 0 5.4 2.7 2.7 0 0 1 0-5.4ZM2.8 13.8a5.2 5.2 0 0 1 10.4 0",
  view: "M4 2.2h8v11.6L8 10.6l-4 3.2Z",
  save: "M8 2v7.5M4.8 6.5 8 9.7l3.2-3.2M2.5 13.5h11",
  edit: "M10.8 2.8l2.4 2.4-7.6 7.6-3 .6.6-3Z",
  skip: "M3.5 3.5 9 8l-5.5 4.5ZM12.5 3.5v9",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
