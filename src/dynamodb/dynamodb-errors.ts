import type { CancellationReason } from "@aws-sdk/client-dynamodb";
import { type ErrorCode, RelayError, reasonOf } from "../core/errors.ts";

/** The fields of an SDK error that are read. */
interface ClientError {
  readonly name?: string;
  readonly code?: string;
  readonly message?: string;
  readonly $metadata?: { readonly httpStatusCode?: number };
  readonly CancellationReasons?: readonly CancellationReason[];
}

const BUSY = new Set([
  ...[
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "RequestLimitExceeded",
    "LimitExceededException",
  ],
  ...["TransactionConflictException", "TransactionInProgressException", "ThrottlingError", "TransactionConflict"],
  ...["ProvisionedThroughputExceeded", "ReplicatedWriteConflictException"],
]);
const FORBIDDEN = new Set(["AccessDeniedException", "AccessDenied", "UnauthorizedOperation"]);
const UNREACHABLE =
  /^(?:ECONN\w+|ENOTFOUND|EAI_AGAIN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|TimeoutError|InternalServerError)$/;
const TOO_LARGE = /item size .*exceeded/i;

/** Translates every error of DynamoDB. A RelayError is returned as it is. */
export function translateError(error: unknown, doing: string): RelayError {
  if (error instanceof RelayError) return error;
  const { CancellationReasons: reasons = [], name = "" } = (error ?? {}) as ClientError;
  const worst = reasons.find(({ Code = "None" }) => !["None", "ConditionalCheckFailed"].includes(Code));
  const code =
    worst === undefined
      ? codeOf((error ?? {}) as ClientError)
      : codeOf({ name: worst.Code ?? "", message: worst.Message ?? "" });
  const said = worst?.Message ?? reasonOf(error);
  return new RelayError(code, `DynamoDB, ${doing}: ${name === "" || said === name ? said : `${name}: ${said}`}`, {
    cause: error,
  });
}

function codeOf({ $metadata, code = "", message = "", name = "" }: ClientError): ErrorCode {
  if (BUSY.has(name)) return "DATABASE_BUSY";
  if (name === "ResourceNotFoundException") return "TABLE_MISSING";
  if (FORBIDDEN.has(name)) return "GRANT_MISSING";
  if (TOO_LARGE.test(message)) return "EVENT_TOO_LARGE";
  if (message.startsWith("Region is missing")) return "CONFIG_INVALID";
  const isServerFault = ($metadata?.httpStatusCode ?? 0) >= 500;
  return isServerFault || UNREACHABLE.test(code) || UNREACHABLE.test(name)
    ? "DATABASE_UNREACHABLE"
    : "DATABASE_REFUSED";
}

/** Whether a condition of the write did not hold: then nothing was written. */
export function isConditionFailure(error: unknown): boolean {
  const cause = ((error as Error | null)?.cause ?? {}) as ClientError;
  return cause.name === "ConditionalCheckFailedException" || failedConditions(error).length > 0;
}

/** The indexes of the transaction's items whose condition did not hold; empty when anything else was wrong. */
export function failedConditions(error: unknown): readonly number[] {
  const { CancellationReasons: reasons = [] } = ((error as Error | null)?.cause ?? {}) as ClientError;
  const isAll = reasons.every(({ Code = "None" }) => Code === "None" || Code === "ConditionalCheckFailed");
  return isAll ? reasons.flatMap(({ Code }, index) => (Code === "ConditionalCheckFailed" ? [index] : [])) : [];
}
