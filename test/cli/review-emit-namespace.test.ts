import { expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { EXAMPLES, usher } from "./usher.ts";

const MANIFESTS = `apiVersion: v1
kind: Pod
metadata: {name: own, namespace: lab}
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: example.com/v1
kind: Unknown
metadata: {name: any}
`;

const namespaces = async (args: readonly string[]) => {
  const { out } = await usher(["review", "-", "--source", EXAMPLES, "--emit", ...args], { stdin: MANIFESTS });
  return parseAllDocuments(out).map((one) => one.toJS().metadata.namespace);
};

test("--emit writes the namespace of -n into namespaced objects without one", async () => {
  expect(await namespaces(["-n", "shop"])).toEqual(["lab", "shop", undefined, undefined]);
});

test("without -n manifests stay without a namespace", async () => {
  expect(await namespaces([])).toEqual(["lab", undefined, undefined, undefined]);
});

test("the namespace follows the name", async () => {
  const { out } = await usher(["review", "-", "--source", EXAMPLES, "--emit", "-n", "shop"], {
    stdin: MANIFESTS,
  });
  expect(out).toContain("  name: web\n  namespace: shop\n  labels:\n");
});
