import { expect, test } from "vitest";
import { folder, usher } from "./usher.ts";

function kubeconfig(server: string): string {
  const content = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server } }],
    users: [{ name: "u", user: { token: "none" } }],
    contexts: [{ name: "here", context: { cluster: "c", user: "u" } }],
    "current-context": "here",
  };
  return `${folder({ config: JSON.stringify(content) })}/config`;
}

// Nothing listens on port 1.
const NOWHERE = "https://127.0.0.1:1";

test.each(["install", "uninstall"])("%s: an unreachable cluster is exit code 3", async (command) => {
  const { code, out, err } = await usher([command, "--kubeconfig", kubeconfig(NOWHERE)]);
  expect({ code, out }).toEqual({ code: 3, out: "" });
  expect(err).toMatch(/ECONNREFUSED/);
  expect(err).not.toMatch(/internal error/);
});

test.each<[string, readonly string[], RegExp]>([
  ["a missing kubeconfig", ["--kubeconfig", "/nowhere/config"], /\/nowhere\/config/],
  ["two mutually exclusive flags", ["--take-over", "--leave-conflicting"], /mutually exclusive/],
  ["no replicas", ["--replicas", "0"], /from 1 to 999/],
  ["a label without a value", ["--pod-label", "team"], /KEY=VALUE/],
])("install: %s is exit code 2", async (_, args, says) => {
  const { code, err } = await usher(["install", ...args]);
  expect(code).toBe(2);
  expect(err).toMatch(says);
});

test("install: an unknown context is exit code 2, and lists those that exist", async () => {
  const { code, err } = await usher(["install", "--kubeconfig", kubeconfig(NOWHERE), "--context", "staging"]);
  expect(code).toBe(2);
  expect(err).toMatch(/"staging" not found in the kubeconfig; contexts: here/);
});

test("manifests prints what install would apply: image, replicas, labels, objects of the namespace", async () => {
  const { out } = await usher([
    "manifests",
    "-o",
    "json",
    ...[
      "--image",
      "registry.example/usher:1",
      "--replicas",
      "3",
      "--pod-label",
      "team=a",
      "--pod-label",
      "x=y",
    ],
  ]);
  const items = JSON.parse(out).items as { kind: string; spec: Record<string, unknown> }[];
  const deployment = items.find(({ kind }) => kind === "Deployment");
  expect(deployment?.spec).toMatchObject({
    replicas: 3,
    template: {
      metadata: { labels: { team: "a", x: "y" } },
      spec: { containers: [{ image: "registry.example/usher:1" }] },
    },
  });
});
