/** Orders per second. A separate file, so that the command's help does not load the demo. */
export const RATE_DEFAULT = 10;
export const RATE_MAX = 1_000;
