// The seccomp filter of Debian's container tools, in the form that a runtime reads.
import { existsSync, readFileSync } from "node:fs";

export const SECCOMP_FILTER = "/usr/share/containers/seccomp.json";

interface Condition {
  readonly caps?: readonly string[];
  readonly arches?: readonly string[];
}

interface Rule {
  readonly names: readonly string[];
  readonly action: string;
  readonly errnoRet?: number;
  readonly args?: readonly object[] | null;
  readonly includes?: Condition;
  readonly excludes?: Condition;
}

const ARCHITECTURES: Readonly<Record<string, { readonly short: string; readonly long: string }>> = {
  x64: { short: "amd64", long: "SCMP_ARCH_X86_64" },
  arm64: { short: "arm64", long: "SCMP_ARCH_AARCH64" },
};

/** Undefined if the machine has none. */
export function seccompProfile(capabilities: readonly string[]): object | undefined {
  const architecture = ARCHITECTURES[process.arch];
  if (architecture === undefined || !existsSync(SECCOMP_FILTER)) return undefined;
  const profile: { defaultAction: string; defaultErrnoRet?: number; syscalls: readonly Rule[] } = JSON.parse(
    readFileSync(SECCOMP_FILTER, "utf8"),
  );
  const names = capabilities.map((name) => `CAP_${name}`);
  const holds = ({ caps = [], arches = [] }: Condition): boolean =>
    caps.some((name) => names.includes(name)) || arches.includes(architecture.short);
  const applies = ({ includes = {}, excludes = {} }: Rule): boolean => {
    const asked = [...(includes.caps ?? []), ...(includes.arches ?? [])];
    return (asked.length === 0 || holds(includes)) && !holds(excludes);
  };
  return {
    defaultAction: profile.defaultAction,
    ...(profile.defaultErrnoRet === undefined ? {} : { defaultErrnoRet: profile.defaultErrnoRet }),
    architectures: [architecture.long],
    syscalls: profile.syscalls.filter(applies).map(({ names, action, errnoRet, args }) => ({
      names,
      action,
      ...(errnoRet === undefined ? {} : { errnoRet }),
      ...(args === undefined || args === null || args.length === 0 ? {} : { args }),
    })),
  };
}
