import type { TechnicalEvent } from "../ports/technical-events.ts";
import { BatchWriter, type BatchWriterOptions } from "./batch-writer.ts";

export type RecorderOptions = BatchWriterOptions<TechnicalEvent>;

/** Writes technical events to their store: `record` is the listener. */
export class TechnicalEventRecorder extends BatchWriter<TechnicalEvent> {}
