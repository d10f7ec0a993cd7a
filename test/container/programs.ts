// Debian programs that tests of the image need: installed once, where permitted.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { withLock } from "../cluster/binaries/lock.ts";
import { isExecutable } from "../cluster/binaries/places.ts";
import { SECCOMP_FILTER } from "./seccomp.ts";

/** The package of each program or file. */
const PACKAGES: Readonly<Record<string, string>> = {
  buildah: "buildah",
  runc: "runc",
  [SECCOMP_FILTER]: "golang-github-containers-common",
  "qemu-aarch64-static": "qemu-user-static",
  zsh: "zsh",
  fish: "fish",
};

/** Of the machine, as apt-get's own: runs with different caches wait for each other too. */
const APT_LOCK = "/var/lib/apt/usher-tests.lock";

export type ProgramName = "buildah" | "runc" | "zsh" | "fish" | "qemu-aarch64-static" | typeof SECCOMP_FILTER;

function missing(names: readonly ProgramName[]): string[] {
  const folders = (process.env["PATH"] ?? "").split(":");
  return names.filter((name) =>
    name === SECCOMP_FILTER ? !existsSync(name) : !folders.some((folder) => isExecutable(join(folder, name))),
  );
}

/** Why this machine can't build and run the image; empty if it can. */
export function imageUnavailable(): string {
  if (process.platform !== "linux") return "The image is built and run on Linux only.";
  if (process.getuid?.() !== 0) return "Containers are started as root, and this is not root.";
  if (!["/usr/bin/apt-get", "/usr/bin/dpkg-deb"].every(isExecutable))
    return "The image is made of Debian packages, and this machine has no apt-get or no dpkg-deb.";
  return "";
}

/** Installs missing packages. Prints that, because it changes the machine. */
export async function ensurePrograms(...names: ProgramName[]): Promise<void> {
  if (missing(names).length === 0) return;
  await withLock(
    APT_LOCK,
    (pid) => process.stderr.write(`waiting for process ${pid}, which installs …\n`),
    async () => {
      const packages = missing(names).map((name) => PACKAGES[name] ?? name);
      if (packages.length === 0) return;
      process.stderr.write(`installing ${packages.join(", ")} for the tests …\n`);
      const install = ["install", "-y", "--no-install-recommends", ...packages];
      for (const args of [["update"], install]) {
        const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
        const { status, stdout, stderr } = spawnSync("apt-get", ["-q", ...args], { encoding: "utf8", env });
        if (status !== 0) throw new Error(`apt-get ${args.join(" ")} failed:\n${stdout}\n${stderr}`);
      }
    },
  );
}
