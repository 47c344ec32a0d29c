import { inspect } from "node:util";

const SLOW_MS = 1_000;

export type Failure = { readonly name: string; readonly detail: string };

/** What is known of one test file while it runs, and afterwards. */
export type FileResult = {
  readonly file: string;
  durationMs: number;
  passed: number;
  skipped: number;
  hasEnded: boolean;
  /** The tests that took longest, in no order. */
  readonly slow: { readonly title: string; readonly durationMs: number }[];
  readonly failures: Failure[];
};

/** The part of the test runner's events that is read here. */
export type TestEvent = {
  readonly name: string;
  readonly nesting: number;
  readonly testId: number;
  readonly parentId?: number | undefined;
  readonly skip?: string | boolean;
  readonly todo?: string | boolean;
  readonly details?: { readonly type?: string; readonly duration_ms?: number; readonly error?: Error };
};

export type ResultOptions = {
  /** Skipped tests fail, as they must in CI. */
  readonly skippingFails: boolean;
  /** Called with the title of each test that passed or failed. */
  readonly onTest: (file: string, title: string, verdict: "passed" | "failed") => void;
};

/** Collects the results of the files of one process, each of which is a suite at the top. */
export class GroupResults {
  readonly files: ReadonlyMap<string, FileResult>;
  readonly #options: ResultOptions;
  readonly #tests = new Map<number, { readonly file: string; readonly title: string }>();
  readonly #open = new Set<number>();

  constructor(files: readonly string[], options: ResultOptions) {
    const empty = { durationMs: 0, passed: 0, skipped: 0, hasEnded: false };
    this.files = new Map(files.map((file) => [file, { file, ...empty, slow: [], failures: [] }]));
    this.#options = options;
  }

  /** The test that runs at present, by its full title. */
  get current(): string | undefined {
    const last = [...this.#open].at(-1);
    const test = last === undefined ? undefined : this.#tests.get(last);
    return test && `${test.file}: ${test.title}`;
  }

  get haveAllEnded(): boolean {
    return [...this.files.values()].every(({ hasEnded }) => hasEnded);
  }

  enqueue(event: TestEvent): void {
    if (event.nesting === 0) {
      this.#tests.set(event.testId, { file: event.name, title: "" });
      return;
    }
    const parent = this.#tests.get(event.parentId ?? -1);
    const title = parent?.title ? `${parent.title} > ${event.name}` : event.name;
    this.#tests.set(event.testId, { file: parent?.file ?? "", title });
  }

  start(event: TestEvent): void {
    if (event.nesting > 0) this.#open.add(event.testId);
  }

  complete(event: TestEvent): void {
    this.#open.delete(event.testId);
  }

  pass(event: TestEvent): void {
    const { result, title } = this.#find(event);
    if (event.nesting === 0) this.#endFile(result, event);
    else if (event.skip !== undefined || event.todo !== undefined) this.#skip(result, title);
    else if (event.details?.type !== "suite") {
      result.passed += 1;
      const durationMs = event.details?.duration_ms ?? 0;
      if (durationMs >= SLOW_MS) result.slow.push({ title, durationMs });
      this.#options.onTest(result.file, event.name, "passed");
    }
  }

  fail(event: TestEvent): void {
    const { result, title } = this.#find(event);
    const error = event.details?.error as (Error & { failureType?: string }) | undefined;
    // The parent of a failed test fails for that reason alone and is no failure of its own.
    const isOwnFailure = error?.failureType !== "subtestsFailed";
    if (event.todo !== undefined) this.#skip(result, title);
    else if (isOwnFailure) {
      result.failures.push({ name: title || "the file cannot be loaded", detail: inspect(error?.cause ?? error) });
      this.#options.onTest(result.file, event.name, "failed");
    }
    if (event.nesting === 0) this.#endFile(result, event);
  }

  /** Of the first file that has not ended, or else of the last: nothing tells which one it was. */
  failProcess(name: string, detail: string): void {
    const results = [...this.files.values()];
    const suspect = results.find(({ hasEnded }) => !hasEnded) ?? results.at(-1);
    suspect?.failures.push({ name, detail });
  }

  /** What did not run because the process ended before is no success. */
  failUnfinished(): void {
    for (const result of this.files.values()) {
      if (result.hasEnded || result.failures.length > 0) continue;
      result.failures.push({ name: "did not run to its end", detail: "the process of this group ended before" });
    }
  }

  #find(event: TestEvent): { readonly result: FileResult; readonly title: string } {
    const { file, title } = this.#tests.get(event.testId) ?? { file: "", title: event.name };
    const result = this.files.get(file);
    if (result === undefined) throw new Error(`The test ${event.name} belongs to no file of its group`);
    return { result, title };
  }

  #endFile(result: FileResult, event: TestEvent): void {
    result.hasEnded = true;
    result.durationMs = event.details?.duration_ms ?? 0;
    const isEmpty = result.passed + result.skipped + result.failures.length === 0;
    if (isEmpty) result.failures.push({ name: "no tests", detail: "the file holds no test" });
  }

  #skip(result: FileResult, title: string): void {
    result.skipped += 1;
    if (this.#options.skippingFails) result.failures.push({ name: title, detail: "skipped, and CI skips nothing" });
  }
}
