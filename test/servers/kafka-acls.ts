import {
  type Acl,
  AclOperations,
  AclPermissionTypes,
  type Admin,
  ResourcePatternTypes,
  ResourceTypes,
} from "@platformatic/kafka";
import { until } from "./until.ts";

/** What somebody may do: a right without a name is about the whole cluster. */
export type Right = {
  readonly operations: readonly (keyof typeof AclOperations)[];
  readonly on: "TOPIC" | "TRANSACTIONAL_ID" | "GROUP" | "CLUSTER";
  readonly name?: string;
  /** The name is only the beginning of the names. */
  readonly prefixed?: boolean;
};

/** Returns when the broker goes by the new rights. `principal` is "User:relay", or "User:CN=relay" of a certificate. */
export async function allow(admin: Admin, principal: string, rights: readonly Right[]): Promise<void> {
  const creations = rights.flatMap((right) => aclsOf(principal, right));
  await admin.createAcls({ creations });
  await until("the rights are in force", async () =>
    (await Promise.all(creations.map((acl) => isInForce(admin, acl)))).every(Boolean),
  );
}

/** Returns when the broker goes by it. */
export async function revoke(admin: Admin, principal: string, rights: readonly Right[]): Promise<void> {
  const filters = rights.flatMap((right) => aclsOf(principal, right));
  await admin.deleteAcls({ filters });
  await until("the rights are gone", async () =>
    (await Promise.all(filters.map((acl) => isInForce(admin, acl)))).every((inForce) => !inForce),
  );
}

function aclsOf(principal: string, { operations, on, name = "kafka-cluster", prefixed = false }: Right): Acl[] {
  return operations.map((operation) => ({
    resourceType: ResourceTypes[on],
    resourceName: name,
    resourcePatternType: prefixed ? ResourcePatternTypes.PREFIXED : ResourcePatternTypes.LITERAL,
    principal,
    host: "*",
    operation: AclOperations[operation],
    permissionType: AclPermissionTypes.ALLOW,
  }));
}

/** The question is answered by the broker that checks the rights, not by the controller that keeps them. */
async function isInForce(admin: Admin, filter: Acl): Promise<boolean> {
  return (await admin.describeAcls({ filter })).length > 0;
}
