/** One measured number with the goal it is held to, if it has one. */
export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly goal?: string;
  readonly met?: boolean;
}

export interface ScenarioOptions {
  /** A share of the rows. */
  readonly scale: number;
  /** Only parts whose name contains this. */
  readonly only: string;
  /** Measure other relays beside ours, where the scenario knows some. */
  readonly peers: boolean;
  /** Measure with very many rows pending too, which takes minutes to write. */
  readonly growth: boolean;
  readonly say: (line: string) => void;
}

export type Scenario = (options: ScenarioOptions) => Promise<Figure[]>;

export function measured(name: string, value: number, unit: string): Figure {
  return { name, value, unit };
}

export function atLeast(name: string, value: number, unit: string, goal: number): Figure {
  return { name, value, unit, goal: `>= ${goal}`, met: value >= goal };
}

export function atMost(name: string, value: number, unit: string, goal: number): Figure {
  return { name, value, unit, goal: `<= ${goal}`, met: value <= goal };
}
