import { headerText, type InboxMessage, inboxMessage, textHeaders } from "./inbox-message.ts";

/** A message of amqplib, by its shape. */
export interface RabbitmqMessage {
  readonly content: Uint8Array;
  readonly fields: { readonly routingKey: string };
  readonly properties: {
    readonly messageId?: unknown;
    readonly type?: unknown;
    readonly correlationId?: unknown;
    readonly headers?: Readonly<Record<string, unknown>> | undefined;
  };
}

/** A message of RabbitMQ as one for `consume`. Acknowledge it after `consume` has resolved. */
export function fromRabbitmq({ content, fields, properties }: RabbitmqMessage): InboxMessage {
  const headers = textHeaders(Object.entries(properties.headers ?? {}));
  return inboxMessage("RabbitMQ", {
    id: headers["event-id"] ?? headerText(properties.messageId),
    type: headerText(properties.type) ?? fields.routingKey,
    key: headers["partition-key"],
    correlationId: headerText(properties.correlationId),
    headers,
    payload: Buffer.from(content),
  });
}
