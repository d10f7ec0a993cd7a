// A source with many policies, as a landscape of databases has them: all share the label `app`, each wants another `role`, and
// all ask for an environment. So the index has to find the one that is rare.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";

/** Where the pods of the load live. Its environment is what the policies ask for. */
export const NAMESPACE = "shop";

export const ROLE_OF_NOBODY = "spare";

/** The role that ten policies want, which are in every source beside those that are counted. */
export const ROLE_OF_TEN = "shared";
const TEN = 10;

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

/** Ten policies for one role. Each adds a thing of its own, or nine of them would have nothing to do. */
export function tenPolicies() {
  return Array.from({ length: TEN }, (_, i) => ({
    apiVersion: "kupid.gardener.cloud/v1alpha1",
    kind: "ClusterPodSchedulingPolicy",
    metadata: { name: `shared-${i}` },
    spec: {
      namespaceSelector: { matchLabels: { environment: "prod" } },
      podSelector: { matchLabels: { app: "etcd", role: ROLE_OF_TEN } },
      nodeSelector: { [`shared.example.com/part-${i}`]: "etcd" },
      tolerations: [{ key: `shared.example.com/part-${i}`, operator: "Exists", effect: "NoSchedule" }],
    },
  }));
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
  writeFileSync(
    join(directory, "shared.yaml"),
    tenPolicies()
      .map((one) => stringify(one))
      .join("---\n"),
  );
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
