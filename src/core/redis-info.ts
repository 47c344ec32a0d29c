/** The value of a line of INFO, which managed servers answer too; undefined where the server does not report it. */
export function infoOf(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1];
}

interface RedisFault {
  readonly severity: "error" | "warning";
  readonly reason: string;
}

/** Why a server with this INFO takes no writes, or loses data. */
export function redisFaults(info: string): readonly RedisFault[] {
  const policy = infoOf(info, "maxmemory_policy") ?? "noeviction";
  const way = "set maxmemory-policy noeviction";
  const faults: readonly (RedisFault & { readonly isThere: boolean })[] = [
    {
      isThere: infoOf(info, "role") === "slave",
      severity: "error",
      reason: "this is a replica: write the address of the primary",
    },
    {
      isThere: infoOf(info, "cluster_enabled") === "1",
      severity: "error",
      reason: "this is a node of a cluster, which is not supported",
    },
    {
      isThere: policy.startsWith("allkeys-"),
      severity: "error",
      reason: `maxmemory-policy is ${policy}: Redis deletes delivered events when its memory is full; ${way}`,
    },
    {
      isThere: policy.startsWith("volatile-"),
      severity: "warning",
      reason: `maxmemory-policy is ${policy}: Redis deletes keys with an expiry when its memory is full; ${way}`,
    },
  ];
  return faults.filter(({ isThere }) => isThere).map(({ reason, severity }) => ({ severity, reason }));
}
