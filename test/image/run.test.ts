import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DEFAULT_INSTALLATION } from "../../src/core/installation/installation.ts";
import { at, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { workloadObjects } from "../../src/core/registration/workload.ts";
import { get, post, readyOf, watched } from "../cli/serving.ts";
import { ended, type Ran, ROOT, start } from "../cli/usher.ts";
import { LONG } from "../cluster/describe.ts";
import { describeImage } from "../container/describe.ts";
import { copyRoot, HOST_ARCHITECTURE } from "../container/image.ts";
import { ensurePrograms } from "../container/programs.ts";
import { type ContainerRun, commandFor, type Runtime, runtime } from "../container/runtime.ts";
import { SECCOMP_FILTER } from "../container/seccomp.ts";
import { securityOf } from "../container/security.ts";

const USER = 65_532;
/** A user id from OpenShift's range. */
const ARBITRARY = 1_000_680_000;
const EXAMPLES = { source: join(ROOT, "examples"), destination: "/examples", readOnly: true };
const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));

function podSpec(): Json | undefined {
  const deployment = workloadObjects(DEFAULT_INSTALLATION, { image: `usher:${version}` }).find(
    ({ kind }) => kind === "Deployment",
  );
  return at(deployment, "spec", "template", "spec");
}

/** As the restricted-v2 constraint sets it: the pod names no user, and gets one of its namespace's range. */
function withArbitraryUser(context: JsonObject): JsonObject {
  return { ...context, runAsUser: ARBITRARY, fsGroup: ARBITRARY };
}

describeImage("a container of the image", (image) => {
  const folder = mkdtempSync(join(tmpdir(), "usher-run-"));
  let root = "";
  let by: Runtime = "chroot";
  beforeAll(async () => {
    await ensurePrograms("runc", SECCOMP_FILTER);
    root = copyRoot(image(), HOST_ARCHITECTURE);
    by = runtime(root, folder);
    console.log(`containers are started by ${by}`);
  }, 600_000);
  afterAll(() => {
    for (const made of [folder, join(root, "..")]) rmSync(made, { recursive: true, force: true });
  });

  /** With the Deployment's security context, environment and mounts. */
  function container(args: readonly string[], change = (context: JsonObject) => context): ContainerRun {
    const spec = podSpec();
    const [first] = listAt(spec, "containers");
    const context = change(at(spec, "securityContext") as JsonObject);
    const own = listAt(first, "env").flatMap((one) => {
      const value = stringAt(one, "value");
      return value === undefined ? [] : [[stringAt(one, "name") ?? "", value]];
    });
    // An emptyDir is writable for every user.
    const writable = mkdtempSync(join(folder, "tmp-"));
    chmodSync(writable, 0o777);
    return {
      root,
      folder,
      args,
      env: { PATH: "/usr/bin", HOME: "/home/usher", ...Object.fromEntries(own) },
      mounts: [EXAMPLES, { source: writable, destination: "/tmp", readOnly: false }],
      security: securityOf(context, at(first, "securityContext"), USER),
      memoryBytes: 512 * 2 ** 20,
    };
  }

  async function ran(run: ContainerRun): Promise<Ran> {
    const [command = "", ...args] = commandFor(by, run);
    return ended(start(command, args, { detached: true }));
  }

  const USERS: readonly (readonly [string, number, number, typeof withArbitraryUser])[] = [
    ["the user of the image, as the Deployment names none", USER, USER, (context) => context],
    ["an arbitrary user of the root group", ARBITRARY, 0, withArbitraryUser],
  ];

  test.each(USERS)("serves as %s", async (_, uid, gid, change) => {
    const serve = ["serve", "--source", "/examples/cluster", "--port=0", "--ops-port=0", "--drain-seconds=0"];
    const run = container(["/usr/bin/usher", ...serve, "-o", "json"], change);
    expect(run.security).toMatchObject({
      uid,
      gid,
      readOnlyRoot: true,
      noNewPrivileges: true,
      capabilities: [],
      seccomp: true,
    });
    const [command = "", ...args] = commandFor(by, run);
    const child = start(command, args, { detached: true });
    const served = await watched(child);
    const { webhook, ops, ca = "" } = readyOf(served);
    expect(await get(`${ops}/readyz`)).toMatchObject({ status: 200 });
    const object = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "etcd-0", namespace: "shop", labels: { app: "etcd" } },
      spec: { containers: [{ name: "etcd", image: "etcd" }] },
    };
    const { status, body } = await post(`${webhook}/mutate`, ca, {
      apiVersion: "admission.k8s.io/v1",
      kind: "AdmissionReview",
      request: {
        uid: "1",
        kind: { group: "", version: "v1", kind: "Pod" },
        resource: { group: "", version: "v1", resource: "pods" },
        requestKind: { group: "", version: "v1", kind: "Pod" },
        requestResource: { group: "", version: "v1", resource: "pods" },
        name: "etcd-0",
        namespace: "shop",
        operation: "CREATE",
        userInfo: { username: "alice" },
        object,
      },
    });
    expect(status).toBe(200);
    expect(JSON.parse(body).response).toMatchObject({ uid: "1", allowed: true, patchType: "JSONPatch" });
    // To the whole group, as a runtime does: its first process is not the container's.
    process.kill(-(child.pid ?? 0), "SIGTERM");
    expect((await served.end).code).toBe(0);
  });

  test("has the operand of ProjectRequestLimit as a separate program", async () => {
    const program = "/usr/bin/project-request-limit-admission";
    const version = await ran(container([program, "--version"]));
    expect(version).toMatchObject({
      code: 0,
      out: (await ran(container(["/usr/bin/usher", "--version"]))).out,
    });
    const missing = "/etc/projectrequestlimit/config/limits.yaml";
    expect(await ran(container([program, `--configuration=${missing}`]))).toMatchObject({
      code: 2,
      err: `project-request-limit-admission: --configuration ${missing} does not exist\n`,
    });
  });

  test.each(USERS)("is confined as %s", async (_, uid, gid, change) => {
    const script = `
      const { readFileSync, writeFileSync } = require("node:fs");
      const status = readFileSync("/proc/self/status", "utf8");
      const field = (name) => new RegExp(name + ":\\\\s*(.*)").exec(status)[1];
      const write = (path) => { try { writeFileSync(path, ""); return "written"; } catch (error) { return error.code; } };
      console.log(JSON.stringify({
        uid: process.getuid(), gid: process.getgid(), home: require("node:os").homedir(),
        capabilities: field("CapEff"), noNewPrivileges: field("NoNewPrivs"), seccomp: field("Seccomp"),
        root: write("/x"), own: write("/usr/lib/usher/x"), tmp: write("/tmp/x"),
      }));`;
    const { code, out, err } = await ran(container(["/usr/bin/node", "--eval", script], change));
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(JSON.parse(out)).toEqual({
      uid,
      gid,
      home: "/home/usher",
      capabilities: "0000000000000000",
      noNewPrivileges: "1",
      // Plain Linux has no seccomp filter to apply.
      seccomp: by === "chroot" ? "0" : "2",
      root: "EROFS",
      own: "EROFS",
      tmp: "written",
    });
  });

  test("ends completely when the process that started it is killed", async () => {
    const run = container(["/usr/bin/node", "--eval", "console.log('up'); setInterval(() => {}, 1e6)"]);
    const [command = "", ...args] = commandFor(by, run);
    const child = start(command, args, { detached: true });
    const served = await watched(child);
    expect(served.line).toBe("up");
    process.kill(-(child.pid ?? 0), "SIGKILL");
    // The output ends only when the last process that holds it is gone.
    await served.end;
  });

  test("of linux/arm64 runs under qemu", async () => {
    await ensurePrograms("qemu-aarch64-static");
    const arm64Root = copyRoot(image(), "arm64");
    const qemu = { source: "/usr/bin/qemu-aarch64-static", destination: "/qemu", readOnly: true };
    const run = (...args: string[]): Promise<Ran> => {
      const { mounts, security, ...rest } = container([]);
      return ran({
        ...rest,
        root: arm64Root,
        mounts: [...mounts, qemu],
        // Emulation needs system calls that the filter does not know.
        security: { ...security, seccomp: false },
        args: ["/qemu", "/usr/bin/node", "/usr/bin/usher", ...args],
      });
    };
    try {
      expect(await run("--version")).toMatchObject({ code: 0, out: `${version}\n` });
      // Under emulation, that alone takes ten seconds.
      if (!LONG) return;
      const review = ["review", "/examples/pods/etcd.yaml", "--source", "/examples/cluster", "-o", "json"];
      const { code, out } = await run(...review);
      expect(code).toBe(0);
      expect(JSON.parse(out).summary).toEqual({ allowed: 3, unchanged: 1, patched: 2, denied: 0 });
    } finally {
      rmSync(join(arm64Root, ".."), { recursive: true, force: true });
    }
  }, 300_000);
});
