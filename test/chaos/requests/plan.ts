import { SeededRandom } from "../../../src/testing/simulator/seeded-random.ts";

export type Ending = "completed" | "refused" | "exhausted";

/** One command of the proof, and what must become of it whoever is killed. */
export interface PlannedRequest {
  readonly tenant: string;
  readonly id: string;
  /** Tells the bank how to treat it. */
  readonly account: string;
  readonly ending: Ending;
}

/** Stands in every account: it may be in the log and at the bank, and nowhere else. */
export const SECRET = "IBAN-CANARY";

/** How a bank treats an account. */
export type Treatment =
  | { readonly kind: "plain" }
  /** It pays first and answers later. */
  | { readonly kind: "slow"; readonly ms: number }
  /** It is too busy so many times. */
  | { readonly kind: "busy"; readonly times: number }
  /** It pays, and the first answer is lost. */
  | { readonly kind: "torn" }
  | { readonly kind: "closed" }
  | { readonly kind: "never" };

const TENANTS = ["core", "acme-eu", "b"] as const;
/** Longer than a lock lives without renewal. */
const VERY_SLOW_MS = [3_500, 5_000] as const;

export function planRequests(count: number, seed: number): PlannedRequest[] {
  const random = new SeededRandom(seed, 1);
  return Array.from({ length: count }, (_, index) => {
    const treatment = draw(random);
    const ending = treatment.kind === "closed" ? "refused" : treatment.kind === "never" ? "exhausted" : "completed";
    return { tenant: random.pick(TENANTS), id: `p-${index}`, account: accountOf(treatment), ending };
  });
}

function draw(random: SeededRandom): Treatment {
  const share = random.next();
  if (share < 0.4) return { kind: "plain" };
  if (share < 0.62) return { kind: "slow", ms: random.int(50, 1_000) };
  if (share < 0.66) return { kind: "slow", ms: random.int(...VERY_SLOW_MS) };
  if (share < 0.82) return { kind: "busy", times: random.int(1, 2) };
  if (share < 0.9) return { kind: "torn" };
  return share < 0.97 ? { kind: "closed" } : { kind: "never" };
}

function accountOf(treatment: Treatment): string {
  const how = treatment.kind === "slow" ? treatment.ms : treatment.kind === "busy" ? treatment.times : 0;
  return `${treatment.kind}/${how}/${SECRET}`;
}

export function treatmentOf(account: string): Treatment {
  const [kind = "", how = ""] = account.split("/");
  if (kind === "slow") return { kind, ms: Number(how) };
  if (kind === "busy") return { kind, times: Number(how) };
  return { kind: kind as "plain" | "torn" | "closed" | "never" };
}
