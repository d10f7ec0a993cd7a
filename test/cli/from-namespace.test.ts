import { expect, test } from "vitest";
import { listAt, stringAt } from "../../src/core/json.ts";
import { folder, usher } from "./usher.ts";

const POLICY = `
apiVersion: kupid.gardener.cloud/v1alpha1
kind: ClusterPodSchedulingPolicy
metadata: { name: teams }
spec:
  namespaceSelector: {}
  podSelector: {}
  fromNamespace:
    nodeSelector: { pool: { label: team } }
    tolerations: [{ key: team, label: team }]
`;
const shop = (team: string) => `
apiVersion: v1
kind: Namespace
metadata: { name: shop, labels: { team: ${team} } }
`;
const WEB = `
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, namespace: shop }
spec:
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: web, image: "web:1" }] }
`;

/** The Deployment as it is stored while the team is red. */
async function stored(): Promise<string> {
  const source = folder({ "policy.yaml": POLICY, "namespace.yaml": shop("red") });
  const { out, code, err } = await usher(["review", "-", "--source", source, "--emit"], { stdin: WEB });
  expect(code, err).toBe(0);
  expect(out).toContain("pool: red");
  return out;
}

test("a workload is current with the label of its creation, and stale with another one", async () => {
  const web = await stored();
  const states = async (team: string) => {
    const source = folder({ "policy.yaml": POLICY, "namespace.yaml": shop(team), "web.yaml": web });
    const { out } = await usher(["placement", "status", "-A", "--source", source, "-o", "json"]);
    return listAt(JSON.parse(out), "workloads").flatMap((one) =>
      listAt(one, "carries").map((carried) => stringAt(carried, "state")),
    );
  };
  expect(await states("red")).toEqual(["current"]);
  expect(await states("blue")).toEqual(["stale"]);
});

test("a re-apply of the same manifest keeps the stored value, and a reapply takes the new one", async () => {
  const web = await stored();
  const source = folder({ "policy.yaml": POLICY, "namespace.yaml": shop("blue"), "web.yaml": web });
  const same = await usher(["review", "-", "--operation", "UPDATE", "--source", source, "--emit"], {
    stdin: WEB,
  });
  expect(same.out).toContain("pool: red");
  const wanted = WEB.replace(
    "name: web, namespace",
    'annotations: { usher.dev/reapply: "1" }, name: web, namespace',
  );
  const reapplied = await usher(["review", "-", "--operation", "UPDATE", "--source", source, "--emit"], {
    stdin: wanted,
  });
  expect(reapplied.out).toContain("pool: blue");
  expect(reapplied.out).not.toContain("red");
});

test("diff, what-if and explain know the values", async () => {
  const web = await stored();
  const source = folder({ "policy.yaml": POLICY, "namespace.yaml": shop("red"), "web.yaml": web });
  const edit = folder({ "edit.yaml": POLICY.replace("pool:", "nodes:") });
  const diff = await usher(["diff", "-f", `${edit}/edit.yaml`, "--source", source]);
  expect(diff.out).toContain("- nodeSelector pool=red");
  expect(diff.out).toContain("+ nodeSelector nodes=red");
  const relabelled = folder({ "namespace.yaml": shop("blue") });
  const whatIf = await usher(["what-if", `${relabelled}/namespace.yaml`, "--source", source]);
  expect(whatIf.out).toContain("+ nodeSelector pool=blue");
  const explained = await usher(["explain", "deployment/web", "-n", "shop", "--source", source]);
  expect(explained.out, explained.err).toContain("pool");
  expect(explained.out).toContain("teams");
});

test("enforcement refuses an object with another value, and judges no namespace without one", async () => {
  const source = folder({
    "policy.yaml": POLICY.replace("podSelector: {}", "podSelector: {}\n  enforcement: Refuse"),
    "namespace.yaml": `${shop("red")}---\napiVersion: v1\nkind: Namespace\nmetadata: { name: lab }\n`,
  });
  const other = (namespace: string) =>
    WEB.replace("namespace: shop", `namespace: ${namespace}`).replace(
      "spec: { containers",
      "spec: { nodeSelector: { pool: blue }, containers",
    );
  const refused = await usher(["review", "-", "--source", source], { stdin: other("shop") });
  expect(refused.code).toBe(1);
  expect(refused.out).toContain("USHER-P30");
  expect((await usher(["review", "-", "--source", source], { stdin: other("lab") })).code).toBe(0);
});
