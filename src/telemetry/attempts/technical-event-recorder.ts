import type { TechnicalEvent } from "../../ports/technical-events.ts";
import { BatchWriter, type BatchWriterOptions } from "./batch-writer.ts";

/** The store of the recorder, and its bounds. */
export type RecorderOptions = BatchWriterOptions<TechnicalEvent>;

/** Writes technical events to a store. Pass `record` as the listener. */
export class TechnicalEventRecorder extends BatchWriter<TechnicalEvent> {}
