import { join } from "node:path";
import { expect, test } from "vitest";
import { EXAMPLES, folder, ROOT, usher } from "./usher.ts";

const PODS = join(ROOT, "examples/pods/etcd.yaml");
const ARGS = ["review", PODS, "--source", EXAMPLES];
const ESCAPE = "\u001b";

test("prints one row per object, further changes below, the summary at the end, and warnings on stderr", async () => {
  const { out, err, code } = await usher(ARGS);
  expect(code).toBe(0);
  expect(out).toBe(`OBJECT                       VERDICT   CHANGES                                        BY
StatefulSet shop/etcd-main   patch     + nodeSelector pool=etcd                       etcd-pool
                                       + nodeSelector topology.kubernetes.io/zone=a   zone-a
Pod shop/reports             patch     + nodeSelector pool=batch                      batch-nights
Pod lab/scratch              allow     -                                              -

3 objects: 1 unchanged, 2 patched, 0 denied
`);
  expect(err).toMatch(/^Warning: Pod shop\/reports: .*\(USHER-P01\)\n$/);
});

test("--quiet prints only the result", async () => {
  const { out, err } = await usher([...ARGS, "--quiet"]);
  expect(err).toBe("");
  expect(out).toBe((await usher(ARGS)).out);
});

test("--trace explains why policies apply or not, for workloads by their template", async () => {
  const { out } = await usher([...ARGS, "--trace"]);
  expect(out.split("\n").slice(0, 7)).toEqual([
    "StatefulSet shop/etcd-main  patch",
    "  batch-nights       no effect  podSelector: needs kind=batch, there is no label kind",
    "  etcd-pool          applies    namespace shop (environment=prod), template app=etcd, role=main",
    "    + nodeSelector pool=etcd",
    "  shop/fast-disks    no effect  podSelector: needs disk in (fast, fastest), there is no label disk",
    "  zone-a             applies    namespace shop (environment=prod), every template",
    "    + nodeSelector topology.kubernetes.io/zone=a",
  ]);
  expect(out).toContain("zone-a             partly     ");
  expect(out).toContain("    ! nodeSelector topology.kubernetes.io/zone: kept the pod's value b");
  expect(out).toContain(
    "zone-a             no effect  namespaceSelector: needs environment=prod, environment is test",
  );
});

test.each([
  ["v1", "ConfigMap", "metadata: {name: a}", "no module handles CREATE of ConfigMap"],
  ["v1", "Pod", "metadata: {name: a, namespace: kube-system}", "namespace kube-system is exempt"],
])("--trace explains why no policy was evaluated: %s %s %s", async (apiVersion, kind, metadata, why) => {
  const stdin = `apiVersion: ${apiVersion}\nkind: ${kind}\n${metadata}\n`;
  const { out } = await usher(["review", "-", "--source", EXAMPLES, "--trace"], { stdin });
  expect(out).toContain(`  no policy was evaluated: ${why}\n`);
});

test("colour is used on terminals only, and not with NO_COLOR", async () => {
  const plain = await usher(ARGS);
  const coloured = await usher(ARGS, { tty: true });
  const without = await usher(ARGS, { tty: true, env: { NO_COLOR: "1" } });
  expect(plain.out).not.toContain(ESCAPE);
  expect(coloured.out).toContain(`${ESCAPE}[32mpatch${ESCAPE}[39m`);
  expect(coloured.err).toContain(`${ESCAPE}[33mWarning:${ESCAPE}[39m`);
  expect(without.out).toBe(plain.out);
  expect(without.err).toBe(plain.err);
  expect(coloured.out.replaceAll(new RegExp(`${ESCAPE}\\[\\d+m`, "g"), "")).toBe(plain.out);
});

test.each([
  [{ FORCE_COLOR: "1" }, false, true],
  [{ FORCE_COLOR: "" }, false, true],
  [{ FORCE_COLOR: "0" }, true, false],
  [{ FORCE_COLOR: "1", NO_COLOR: "1" }, false, true],
])("%j, terminal %s: colour %s", async (env, tty, coloured) => {
  const { out, err } = await usher(ARGS, { env, tty });
  expect(out.includes(ESCAPE)).toBe(coloured);
  expect(err.includes(ESCAPE)).toBe(coloured);
});

test.each([40, 60, 80, 100])("wraps to %i columns, and loses nothing", async (columns) => {
  const wide = await usher(ARGS);
  const { out } = await usher(ARGS, { tty: true, columns, env: { NO_COLOR: "1" } });
  for (const line of out.split("\n").slice(0, -3))
    expect(line.length).toBeLessThanOrEqual(Math.max(columns, 57));
  const words = (text: string) => text.replaceAll(/\s/g, "").split("").sort().join("");
  expect(words(out)).toBe(words(wide.out));
  const coloured = await usher(ARGS, { tty: true, columns });
  expect(coloured.out.match(/\u001b\[32mpatch/g)).toHaveLength(2);
});

test("a denial shows its code, the policy, and what to do next", async () => {
  const policy = `
apiVersion: kupid.gardener.cloud/v1alpha1
kind: PodSchedulingPolicy
metadata: {name: bad, namespace: shop}
spec: {podSelector: {matchExpressions: [{key: a, operator: Exist}]}}
`;
  const directory = folder({ "bad.yaml": policy });
  for (const more of [[], ["--trace"]]) {
    const { out, err, code } = await usher(["review", directory, "--source", EXAMPLES, ...more]);
    expect(code).toBe(1);
    expect(out).toMatch(/PodSchedulingPolicy shop\/bad +deny/);
    expect(out).toMatch(/did you mean "Exists"\? \(USHER-E04\)/);
    expect(out).toContain("1 object: 0 unchanged, 0 patched, 1 denied");
    expect(err).toBe('Run "usher help USHER-E04" for an explanation.\n');
  }
});

test("control characters in names are not printed", async () => {
  const stdin = 'apiVersion: v1\nkind: Pod\nmetadata: {name: "a\\e[2Jb\\nc\\u202e", namespace: shop}\n';
  for (const more of [[], ["--trace"]]) {
    const { out, err } = await usher(["review", "-", "--source", EXAMPLES, ...more], { stdin });
    expect(out + err).not.toMatch(/\u001b|\u202e/);
  }
});
