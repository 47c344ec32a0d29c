/** Orders a second. In a file of its own: the command's help knows them without loading the demo. */
export const RATE_DEFAULT = 10;
export const RATE_MAX = 1_000;
