// A source with many policies, as a landscape of databases has them: all share the label `app`, each wants another `role`, and
// all ask for an environment. So the index has to find the one that is rare.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";

/** Where the pods of the load live. Its environment is what the policies ask for. */
export const NAMESPACE = "shop";

export const ROLE_OF_NOBODY = "spare";

export const SIZES = [10, 1_000, 10_000] as const;

/** As people keep them: neither one huge file nor a file for each. */
const A_FILE = 100;

/** The one policy with a file of its own, so that changing it changes nothing else. */
export const CHANGING_FILE = "changing.yaml";

export function roleOf(i: number): string {
  return `tenant-${String(i).padStart(5, "0")}`;
}

/** The policy that wants pods of one role, which it sends to a pool. */
export function policy(i: number, pool = "etcd") {
  return {
    apiVersion: "kupid.gardener.cloud/v1alpha1",
    kind: "ClusterPodSchedulingPolicy",
    metadata: { name: `etcd-${roleOf(i)}`, labels: { "app.kubernetes.io/part-of": "landscape" } },
    spec: {
      namespaceSelector: { matchLabels: { environment: "prod" } },
      podSelector: { matchLabels: { app: "etcd", role: roleOf(i) } },
      nodeSelector: { pool },
    },
  };
}

export const NAMESPACE_OBJECT = {
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name: NAMESPACE, labels: { environment: "prod", team: "shop" } },
};

/** Writes a source with so many policies and gives its directory. */
export function writeSource(parent: string, count: number): string {
  const directory = join(parent, `source-${count}`);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "namespaces.yaml"), stringify(NAMESPACE_OBJECT));
  for (let start = 0; start < count - 1; start += A_FILE) {
    const texts: string[] = [];
    for (let i = start; i < Math.min(start + A_FILE, count - 1); i++) texts.push(stringify(policy(i)));
    writeFileSync(join(directory, `policies-${String(start).padStart(5, "0")}.yaml`), texts.join("---\n"));
  }
  changePolicy(directory, count, "etcd");
  return directory;
}

/** Writes the one policy anew, with another pool. */
export function changePolicy(directory: string, count: number, pool: string): void {
  writeFileSync(join(directory, CHANGING_FILE), stringify(policy(count - 1, pool)));
}
