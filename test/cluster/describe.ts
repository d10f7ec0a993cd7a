// How test files request a cluster.

import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, inject } from "vitest";
import { ClusterAccess } from "./access/access.ts";
import { eventually } from "./access/wait.ts";
import { askBroker } from "./broker.ts";
import { type Cluster, type ClusterOptions, startCluster } from "./cluster.ts";
import type { Images } from "./runner.ts";

/** The first start builds the binaries. */
const FIRST_START_MS = 60 * 60_000;
const STOP_MS = 60_000;

/** Whether this is `npm run test:long`, which runs in full what `npm test` runs once or in part. */
export const LONG = process.env["USHER_LONG"] !== undefined;

function describeWith<T>(
  title: string,
  open: () => Promise<T>,
  close: (opened: T) => unknown,
  body: (opened: () => T) => void,
): void {
  const reason = inject("clusterUnavailable");
  // Only on machines that can't run a cluster; global-setup.ts reports it after the summary.
  describe.skipIf(reason !== "")(title, () => {
    let opened: T | undefined;
    beforeAll(async () => {
      opened = await open();
    }, FIRST_START_MS);
    afterAll(async () => {
      if (opened !== undefined) await close(opened);
    }, STOP_MS);
    body(() => {
      if (opened === undefined)
        throw new Error("the cluster is available when the tests run, not while they are collected");
      return opened;
    });
  });
}

/** Tests in the cluster that all files share: use your own namespaces, and leave the control plane intact. */
export function describeCluster(title: string, body: (cluster: () => ClusterAccess) => void): void {
  const open = async (): Promise<ClusterAccess> =>
    new ClusterAccess(await askBroker(inject("clusterBroker")));
  describeWith(title, open, (access) => access.close(), body);
}

/** Pods run the bundle in place of the clone's own program. */
function bundled(options: ClusterOptions): ClusterOptions {
  const program = inject("usherBundle");
  if (program === undefined) return options;
  const inPlace = (words: Images[string]) =>
    Array.isArray(words) ? words.map((word) => (word === "src/cli/main.ts" ? program : word)) : words;
  const own = Object.entries(options.images ?? {}).map(([name, words]) => [name, inPlace(words)] as const);
  return { ...options, images: { usher: ["node", program], ...Object.fromEntries(own) } };
}

/** Tests in their own cluster, to break it or to run it with other flags. */
export function describeOwnCluster(
  title: string,
  options: ClusterOptions | (() => Promise<ClusterOptions>),
  body: (cluster: () => Cluster) => void,
): void {
  describeWith(
    title,
    async () => startCluster(bundled(typeof options === "function" ? await options() : options)),
    (cluster) => cluster.stop(),
    body,
  );
}

/** A new namespace that pods can be created in. */
export async function createNamespace(
  cluster: ClusterAccess,
  labels: Readonly<Record<string, string>> = {},
): Promise<string> {
  const name = `test-${randomBytes(5).toString("hex")}`;
  await cluster.call("POST", "/api/v1/namespaces", {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name, labels },
  });
  const account = `/api/v1/namespaces/${name}/serviceaccounts/default`;
  await eventually(
    `the service account of ${name}`,
    async () => (await cluster.request("GET", account)).status === 200,
  );
  return name;
}

/** A namespace for the tests of one `describe`; deleted after them, so that its pods end. */
export function testNamespace(cluster: () => ClusterAccess): () => string {
  let name = "";
  beforeAll(async () => {
    name = await createNamespace(cluster());
  });
  afterAll(async () => {
    if (name !== "") await cluster().request("DELETE", `/api/v1/namespaces/${name}`);
  });
  return () => name;
}
