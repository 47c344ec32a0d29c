import { join } from "node:path";
import { pythonPackage } from "./python-package.ts";

/** How the checker of manifests is called. It brings the schemas of the Kubernetes API with it. */
export async function kubernetesValidateCommand(): Promise<readonly [program: string, ...args: string[]]> {
  // Its own script knows only the folder in which it was made.
  return [join(await pythonPackage("kubernetes-validate", "1.37.0"), "python"), "-m", "kubernetes_validate"];
}
