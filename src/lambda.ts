export { type FilterPattern, streamFilter } from "./lambda/filter-pattern.ts";
export { type IntentHandler, type IntentHandlerOptions, intentHandler } from "./lambda/intent-handler.ts";
export type { BatchResponse, IntentEvent, LambdaContext, StreamRecord } from "./lambda/lambda-events.ts";
