// Debian packages by the apt of this machine: its sources, keys and proxies, but separate lists and caches, so that the
// machine is not changed and any user may run it.
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ARCHITECTURES, type Architecture, type DebianLock, type DebianPackage } from "./lock.ts";

/** The libraries of Node's binary, their licences, the identification of the system, and the CA certificates of the web. */
const PACKAGES = ["base-files", "gcc-12-base", "libc6", "libgcc-s1", "libstdc++6"];
const PACKAGES_FOR_ALL = ["ca-certificates"];

/** The archive has no such version any more, or this machine's sources are of another release. */
export class NotInArchive extends Error {}

export class Apt {
  readonly #folder: string;
  #updated = false;

  /** Keeps its lists in the folder. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Puts the package's file into the folder. */
  download(locked: DebianPackage, into: string): void {
    const { status, text } = this.#ask(["download", specification(locked)], into);
    if (status === 0) return;
    if (!/was not found|Unable to locate|no candidate/.test(text)) throw new Error(text.trim());
    throw new NotInArchive(
      `${locked.name} ${locked.version} (${locked.architecture}) is not in the archives of this machine's apt: either Debian has replaced it (then \`npm run image -- --update\` writes a new lock), or the machine is of another release than the lock.\n${text.trim()}`,
    );
  }

  /** The newest of everything, as a lock. */
  resolve(created: Date): DebianLock {
    const wanted = ARCHITECTURES.flatMap((architecture) => PACKAGES.map((name) => `${name}:${architecture}`));
    const { status, text } = this.#ask(
      ["download", "--print-uris", ...wanted, ...PACKAGES_FOR_ALL],
      this.#folder,
    );
    if (status !== 0) throw new Error(text.trim());
    const packages = [...text.matchAll(/^'.*' (\S+)_(\S+)_(\S+)\.deb \d+ SHA256:([0-9a-f]{64})$/gm)].map(
      ([, name = "", version = "", architecture = "", sha256 = ""]): DebianPackage => ({
        name,
        // A colon, as in an epoch, is escaped in the name of a file.
        version: decodeURIComponent(version),
        architecture: architecture as Architecture,
        sha256,
      }),
    );
    if (packages.length !== wanted.length + PACKAGES_FOR_ALL.length)
      throw new Error(`apt does not know the hash of every package:\n${text.trim()}`);
    const key = ({ name, architecture }: DebianPackage): string => `${name} ${architecture}`;
    return {
      release: release(),
      created: created.toISOString(),
      packages: packages.sort((one, other) => (key(one) < key(other) ? -1 : 1)),
    };
  }

  #ask(args: readonly string[], cwd: string): { status: number | null; text: string } {
    if (!this.#updated) {
      for (const folder of ["lists/partial", "cache/archives/partial"])
        mkdirSync(join(this.#folder, folder), { recursive: true });
      writeFileSync(join(this.#folder, "status"), "");
      const { status, text } = this.#run(["update"], this.#folder);
      if (status !== 0) throw new Error(`apt can't read its archives:\n${text.trim()}`);
      this.#updated = true;
    }
    return this.#run(args, cwd);
  }

  #run(args: readonly string[], cwd: string): { status: number | null; text: string } {
    const options = {
      "Dir::State": this.#folder,
      "Dir::State::status": join(this.#folder, "status"),
      "Dir::Cache": join(this.#folder, "cache"),
      "APT::Architecture": ARCHITECTURES[0],
      "APT::Architectures": ARCHITECTURES.join(","),
      // It drops to a user that may not be able to write here.
      "APT::Sandbox::User": "root",
      "Acquire::Languages": "none",
      "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
    };
    const flags = Object.entries(options).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
    const result = spawnSync("apt-get", [...flags, ...args], {
      cwd,
      encoding: "utf8",
      env: { ...process.env, LC_ALL: "C" },
    });
    if (result.error !== undefined)
      throw new Error(
        `The image is built from Debian packages, and apt-get can't be started here (${result.error.message}). Run this on Debian, or in a container of it.`,
      );
    return { status: result.status, text: `${result.stdout}${result.stderr}` };
  }
}

function specification({ name, version, architecture }: DebianPackage): string {
  return `${name}${architecture === "all" ? "" : `:${architecture}`}=${version}`;
}

/** The code name of the release that this machine is. */
function release(): string {
  const [, name = "unknown"] = /^VERSION_CODENAME=(.*)$/m.exec(readFileSync("/etc/os-release", "utf8")) ?? [];
  return name;
}
