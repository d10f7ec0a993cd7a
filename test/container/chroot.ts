// Without a container runtime: as far as plain Linux goes. A read-only root, the user and no new privileges; no seccomp
// filter and no memory limit.
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { ContainerRun } from "./runtime.ts";

/** For a shell in its own mount namespace. */
export function chrootScript(run: ContainerRun): string {
  const { uid, gid, groups, readOnlyRoot, noNewPrivileges } = run.security;
  const root = join(run.folder, `root-${randomUUID()}`);
  const lines: string[] = [];
  const bind = (source: string, place: string, readOnly: boolean): void => {
    lines.push(`mkdir -p ${quoted(place)}`, `mount --rbind ${quoted(source)} ${quoted(place)}`);
    if (readOnly) lines.push(`mount -o remount,bind,ro ${quoted(place)}`);
  };
  bind(run.root, root, false);
  for (const folder of ["/proc", "/dev"]) bind(folder, join(root, folder), false);
  for (const { source, destination, readOnly } of run.mounts) bind(source, join(root, destination), readOnly);
  if (readOnlyRoot) lines.push(`mount -o remount,bind,ro ${quoted(root)}`);
  const env = Object.entries(run.env).map(([name, value]) => `${name}=${value}`);
  const privileges = ["setpriv", noNewPrivileges ? "--no-new-privs" : "--keep-groups"];
  const change = [`--userspec=${uid}:${gid}`, `--groups=${groups.join(",")}`, root, ...run.args];
  // Found before the environment is replaced by the container's.
  const chroot = '"$(command -v chroot)"';
  const words = (list: readonly string[]): string => list.map(quoted).join(" ");
  return [...lines, `exec env -i ${words(env)} ${words(privileges)} ${chroot} ${words(change)}`].join("\n");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
