import { RemovalPolicy } from "aws-cdk-lib";
import {
  type Attribute,
  AttributeType,
  BillingMode,
  type GlobalSecondaryIndexProps,
  ProjectionType,
  StreamViewType,
  Table,
  TableEncryption,
  type TableProps,
} from "aws-cdk-lib/aws-dynamodb";
import type { IGrantable } from "aws-cdk-lib/aws-iam";
import { Construct } from "constructs";
import { DEAD_LETTERS_INDEX, PARTITION_KEY, RETRIES_INDEX, TTL_ATTRIBUTE } from "./outbox-relay.ts";

/** What is in it is nobody else's copy: neither a mistyped command nor a deleted stack may take it away. */
const KEPT: Partial<TableProps> = {
  billingMode: BillingMode.PAY_PER_REQUEST,
  encryption: TableEncryption.AWS_MANAGED,
  pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
  removalPolicy: RemovalPolicy.RETAIN,
  deletionProtection: true,
};

/** Where intents wait, and where those lie that nothing tries again by itself. */
export class OutboxTables extends Construct {
  readonly outbox: Table;
  readonly deadLetters: Table;

  constructor(scope: Construct, id: string) {
    super(scope, id);
    const partitionKey = text(PARTITION_KEY);
    const stream = StreamViewType.NEW_AND_OLD_IMAGES;
    this.outbox = new Table(this, "Outbox", { ...KEPT, partitionKey, stream, timeToLiveAttribute: TTL_ATTRIBUTE });
    // Sparse: what is delivered has no longer the keys of it.
    this.outbox.addGlobalSecondaryIndex(indexOf(RETRIES_INDEX));
    this.deadLetters = new Table(this, "DeadLetters", { ...KEPT, partitionKey, stream });
    this.deadLetters.addGlobalSecondaryIndex(indexOf(DEAD_LETTERS_INDEX));
  }

  /** For the application: it writes intents, in transactions of its own, and does nothing else here. */
  grantWrite(grantee: IGrantable): void {
    this.outbox.grant(grantee, "dynamodb:PutItem");
  }
}

function indexOf({ name, partitionKey, projection, sortKey }: typeof RETRIES_INDEX): GlobalSecondaryIndexProps {
  return {
    indexName: name,
    partitionKey: text(partitionKey),
    sortKey: text(sortKey),
    projectionType: ProjectionType[projection],
  };
}

function text(name: string): Attribute {
  return { name, type: AttributeType.STRING };
}
