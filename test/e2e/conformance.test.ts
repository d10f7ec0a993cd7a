import { randomUUID } from "node:crypto";
import { beforeAll } from "vitest";
import { type JsonObject, stringAt } from "../../src/core/json.ts";
import { nameOf, namespaceOf } from "../../src/core/kubernetes/object.ts";
import type { ClusterAccess } from "../cluster/access/access.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeCluster } from "../cluster/describe.ts";
import { GREETINGS, GROUP, greeter } from "../conformance/modules.ts";
import { type ObjectRef, sourceConformance } from "../conformance/source.ts";
import { installKinds, openLive } from "./live-source.ts";

function pathOf({ kind, namespace, name }: Pick<ObjectRef, "kind" | "namespace" | "name">): string {
  return kind === "Greeting"
    ? `/apis/${GROUP}/v1/greetings/${name}`
    : `/api/v1/namespaces/${namespace}/configmaps/${name}`;
}

async function put(cluster: ClusterAccess, object: JsonObject): Promise<void> {
  const ref = { kind: stringAt(object, "kind") ?? "", namespace: namespaceOf(object), name: nameOf(object) };
  const path = pathOf(ref);
  const { status } = await cluster.request("GET", path);
  if (status === 404) await cluster.call("POST", path.slice(0, path.lastIndexOf("/")), object);
  else {
    // Replaced, not merged: fields that the object no longer has must go.
    const version = stringAt(await cluster.call("GET", path), "metadata", "resourceVersion") ?? "";
    const metadata = { ...(object["metadata"] as JsonObject), resourceVersion: version };
    await cluster.call("PUT", path, { ...object, metadata });
  }
}

describeCluster("conformance", (cluster) => {
  beforeAll(() => installKinds(cluster(), [greeter]));

  sourceConformance("a live cluster", async (modules) => {
    const { source, [Symbol.asyncDispose]: close } = await openLive(cluster(), modules);
    // Changes of one resource arrive in order: when this marker is seen, so is every earlier change.
    const mark = `caught-up-${randomUUID().slice(0, 8)}`;
    const marks = (count: number): JsonObject[] => [
      {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: mark, namespace: "default", labels: { count: String(count) } },
      },
      {
        apiVersion: `${GROUP}/v1`,
        kind: "Greeting",
        metadata: { name: mark },
        spec: { word: String(count) },
      },
    ];
    let count = 0;
    const caughtUp = async (): Promise<void> => {
      count += 1;
      for (const object of marks(count)) await put(cluster(), object);
      const { view } = source.assembly;
      await eventually("the marker", () => {
        const word = stringAt(view.get(GREETINGS, "", mark), "spec", "word");
        const label = stringAt(view.get("configmaps", "default", mark), "metadata", "labels", "count");
        return word === String(count) && label === String(count);
      });
    };
    await source.cache.waitForSync();
    await caughtUp();
    return {
      source,
      caughtUp,
      put: async (objects) => {
        for (const object of objects) await put(cluster(), object);
      },
      remove: async (refs) => {
        for (const ref of refs) await cluster().request("DELETE", pathOf(ref));
      },
      stop: async () => {
        await close();
        for (const object of marks(0)) {
          const kind = stringAt(object, "kind") ?? "";
          await cluster().request("DELETE", pathOf({ kind, namespace: "default", name: mark }));
        }
      },
    };
  });
});
