// Planned writes of a declared command, through the real command line to a real API server.
import { expect, test } from "vitest";
import { at, type Json, stringAt } from "../../src/core/json.ts";
import { usher } from "../cli/usher.ts";
import { describeCluster, testNamespace } from "../cluster/describe.ts";
import { declarations } from "../support/modules/tenancy/declaration.ts";

const OWNER = "tenancy.usher.dev/owner";

describeCluster("commands of a module that write", (cluster) => {
  const namespace = testNamespace(cluster);

  const tenancy = async (args: readonly string[], stdin = "", user?: string) => {
    const kubeconfig = await cluster().kubeconfig(user);
    return usher(["tenancy", ...args, "--kubeconfig", kubeconfig], { modules: declarations, stdin });
  };
  const stored = () => cluster().call("GET", `/api/v1/namespaces/${namespace()}`);
  const owner = async () => stringAt(await stored(), "metadata", "annotations", OWNER);
  const csv = () => `${namespace()},alice\nno-such-namespace,bob\nhalf a line\n`;

  test("without --apply a dry run shows the plan, and nothing is stored", async () => {
    const before = stringAt(await stored(), "metadata", "resourceVersion");
    const { code, out, err } = await tenancy(["backfill", "-"], csv());
    expect(out).toMatch(/^NAMESPACE +RESULT +CHANGES\n/);
    expect(out).toContain(`would change   + metadata.annotations[${OWNER}]=alice`);
    expect(out).toMatch(/Namespace no-such-namespace +failed +not found/);
    expect(out).toContain("\n2 namespaces: 1 would change, 1 failed\n");
    expect(err).toContain("stdin:3: must be namespace,user");
    expect(err).toContain("dry run: nothing was changed; use --apply to write");
    expect(code).toBe(1);
    expect(stringAt(await stored(), "metadata", "resourceVersion")).toBe(before);
  });

  test("the API server refuses the dry run of a user without the permission", async () => {
    const { code, err } = await tenancy(["backfill", "-"], `${namespace()},alice\n`, "nobody");
    expect(err).toMatch(/not allowed to get: .*User "nobody" cannot get/);
    expect(code).toBe(1);
  });

  test("--apply writes as its own field manager, and a second run changes nothing", async () => {
    const text = `${namespace()},alice\n`;
    const first = await tenancy(["backfill", "-", "--apply", "-o", "json"], text);
    expect(JSON.parse(first.out), first.err).toEqual({
      apiVersion: "cli.usher.dev/v1",
      kind: "Writes",
      results: [
        {
          object: { kind: "Namespace", name: namespace() },
          result: "stamped",
          changes: [`+ metadata.annotations[${OWNER}]=alice`],
        },
      ],
      summary: { stamped: 1, wouldChange: 0, unchanged: 0, failed: 0 },
    });
    expect(first.code).toBe(0);
    expect(await owner()).toBe("alice");
    const managers = at(await stored(), "metadata", "managedFields") as Json[];
    expect(managers.map((one) => stringAt(one, "manager"))).toContain("usher-backfill");
    const second = await tenancy(["backfill", "-", "--apply"], text);
    expect(second.out).toContain("1 namespace: 0 stamped, 1 unchanged");
    expect(second.code).toBe(0);
  });

  test("an object is created by server-side apply, after a dry run, and changed by a second one", async () => {
    const grant = (to: string, ...args: string[]) =>
      tenancy(["override", "grant", "--to", to, "-n", namespace(), ...args]);
    const path = `/api/v1/namespaces/${namespace()}/configmaps/grant`;
    const dry = await grant("alice", "--dry-run");
    expect(dry.out, dry.err).toMatch(/ConfigMap \S+\/grant +would change +\+ created/);
    expect((await cluster().request("GET", path)).status).toBe(404);
    const granted = await grant("alice");
    expect(granted.out, granted.err).toMatch(
      /^GRANT +RESULT +CHANGES\nConfigMap \S+\/grant +written +\+ created\n\n1 grant: 1 written\n$/,
    );
    const changed = await grant("bob");
    expect(changed.out, changed.err).toContain("~ data.to alice -> bob");
    expect(at(await cluster().call("GET", path), "data", "to")).toBe("bob");
  });
});
