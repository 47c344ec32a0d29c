import { reasonOf } from "../../core/errors.ts";
import type { Overview } from "../../http/overview.ts";
import { overviewSchema } from "../../http/schemas/overview.ts";
import { EXIT, Exit } from "../../service/exit.ts";

/** The answer times of a destination, measured by one relay: only the sender knows them. */
export interface SeenDestination {
  readonly relay: string;
  readonly destination: string;
  readonly answers: NonNullable<Overview["destinations"][number]["answers"]>;
}

/** The answer times of all destinations, by relay. */
export interface AnswerTimes {
  readonly destinations: readonly SeenDestination[];
  /** One line for each relay that did not answer. */
  readonly problems: readonly string[];
}

/** No relay was asked. */
export const NO_ANSWERS: AnswerTimes = { destinations: [], problems: [] };

const TIMEOUT_MS = 2_000;

/** Asks each relay for its overview. A relay that does not answer becomes a problem, and the others still count. */
export async function readAnswerTimes(urls: readonly URL[], token: string | undefined): Promise<AnswerTimes> {
  const parts = await Promise.all(urls.map((url) => answerTimesOf(url, token)));
  return {
    destinations: parts.flatMap(({ destinations }) => destinations),
    problems: parts.flatMap(({ problems }) => problems),
  };
}

/** Parses `--url`. */
export function relayUrls(texts: readonly string[]): readonly URL[] {
  return texts.map((text) => {
    const url = URL.parse(text);
    if (url !== null && /^https?:$/.test(url.protocol)) return url;
    throw new Exit(EXIT.usage, [`--url is ${JSON.stringify(text)}: write an address like http://127.0.0.1:3012`]);
  });
}

async function answerTimesOf(url: URL, token: string | undefined): Promise<AnswerTimes> {
  try {
    const response = await fetch(new URL("/api/v1/overview", url), {
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (!response.ok) return failed(url, `it answered ${response.status}; set ADMIN_TOKEN to the relay's token`);
    const { destinations } = overviewSchema.parse(await response.json());
    return {
      destinations: destinations.flatMap(({ answers, destination }) =>
        answers === null ? [] : [{ relay: url.host, destination, answers }],
      ),
      problems: [],
    };
  } catch (error) {
    return failed(url, reasonOf((error as { readonly cause?: unknown }).cause ?? error, 200));
  }
}

function failed(url: URL, why: string): AnswerTimes {
  return { destinations: [], problems: [`No answer times from the relay at ${url.host}: ${why}`] };
}
