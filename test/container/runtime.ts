// Runs a command in the root of an image, with this machine's container runtime.
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chrootScript } from "./chroot.ts";
import { seccompProfile } from "./seccomp.ts";
import type { Security } from "./security.ts";

export interface Mounted {
  readonly source: string;
  readonly destination: string;
  readonly readOnly: boolean;
}

export interface ContainerRun {
  /** The files of the image. Mount points are made in it. */
  readonly root: string;
  /** A folder for the runtime's own files. */
  readonly folder: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly mounts: readonly Mounted[];
  readonly security: Security;
  readonly memoryBytes?: number;
}

export const RUNTIMES = ["runc", "crun", "chroot"] as const;
export type Runtime = (typeof RUNTIMES)[number];

let found: Runtime | undefined;

/** The first of these that can start a container here; `USHER_RUNTIME` names another. */
export function runtime(root: string, folder: string): Runtime {
  found ??=
    (process.env["USHER_RUNTIME"] as Runtime | undefined) ??
    RUNTIMES.find((one) => starts(one, root, folder));
  if (found === undefined)
    throw new Error("neither runc nor crun nor chroot starts a container here; that needs root");
  return found;
}

function starts(one: Runtime, root: string, folder: string): boolean {
  const [command = "", ...args] = commandFor(one, {
    root,
    folder,
    args: ["/usr/bin/node", "--version"],
    env: {},
    mounts: [],
    security: {
      uid: 65_532,
      gid: 65_532,
      groups: [],
      readOnlyRoot: true,
      noNewPrivileges: true,
      capabilities: [],
      seccomp: false,
    },
  });
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}

/** The command line that runs it in the foreground. Everything ends when the first process of this command line does. */
export function commandFor(one: Runtime, run: ContainerRun): string[] {
  // In its own process and mount namespaces: the kernel ends everything in them with their first process, however that
  // ends.
  const apart = ["unshare", "--pid", "--mount", "--mount-proc", "--fork", "--kill-child"];
  if (one === "chroot") return [...apart, "sh", "-ec", chrootScript(run)];
  const id = `usher-${randomUUID()}`;
  const bundle = join(run.folder, id);
  mkdirSync(bundle, { recursive: true });
  writeFileSync(join(bundle, "config.json"), JSON.stringify(specification(run)));
  const flags = one === "crun" ? ["--cgroup-manager=disabled"] : [];
  const state = join(run.folder, "state");
  return [...apart, one, "--root", state, ...flags, "run", "--bundle", bundle, id];
}

/** The configuration of a runtime: shares the machine's network; everything else is the container's own. */
function specification(run: ContainerRun): object {
  const { uid, gid, groups, readOnlyRoot, noNewPrivileges, capabilities, seccomp } = run.security;
  const named = capabilities.map((name) => `CAP_${name}`);
  const profile = seccomp ? seccompProfile(capabilities) : undefined;
  const hidden = ["nosuid", "noexec", "nodev"];
  return {
    ociVersion: "1.0.2",
    process: {
      terminal: false,
      user: { uid, gid, additionalGids: groups },
      args: run.args,
      env: Object.entries(run.env).map(([name, value]) => `${name}=${value}`),
      cwd: "/",
      capabilities: { bounding: named, effective: named, permitted: named },
      noNewPrivileges,
    },
    root: { path: run.root, readonly: readOnlyRoot },
    mounts: [
      { destination: "/proc", type: "proc", source: "proc", options: hidden },
      { destination: "/dev", type: "tmpfs", source: "tmpfs", options: ["nosuid", "mode=755", "size=65536k"] },
      { destination: "/sys", type: "sysfs", source: "sysfs", options: [...hidden, "ro"] },
      { destination: "/sys/fs/cgroup", type: "cgroup", source: "cgroup", options: [...hidden, "ro"] },
      ...run.mounts.map(({ source, destination, readOnly }) => ({
        destination,
        type: "bind",
        source,
        options: ["rbind", readOnly ? "ro" : "rw"],
      })),
    ],
    linux: {
      namespaces: ["pid", "ipc", "uts", "mount"].map((type) => ({ type })),
      ...(profile === undefined ? {} : { seccomp: profile }),
      ...(run.memoryBytes === undefined ? {} : { resources: { memory: { limit: run.memoryBytes } } }),
    },
  };
}
