// A container in the root of a real image: with real mounts, the pod's user, and its security context enforced. Only
// the network is shared with the machine, so ports are rewritten as for a local process.
import { join } from "node:path";
import { type ContainerRun, commandFor, runtime } from "../../container/runtime.ts";
import { securityOf } from "../../container/security.ts";
import type { ContainerSpec, Pod } from "./pod-spec.ts";
import { type Ports, rewrite } from "./rewrite.ts";

/** An image as `npm run image` unpacks it, with its configuration. */
export interface ImageRoot {
  /** Mount points are made in it. */
  readonly root: string;
  readonly entrypoint: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly user: number;
}

export interface ContainedOptions {
  readonly pod: Pod;
  readonly image: ImageRoot;
  readonly folder: string;
  readonly ports: Ports;
  readonly expand: (text: string) => string;
  readonly env: Readonly<Record<string, string>>;
  readonly volumeFolder: (name: string) => string;
}

const UNITS: Readonly<Record<string, number>> = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30 };

function memoryLimit({ resources }: ContainerSpec): number | undefined {
  const [, number, unit = ""] = /^(\d+)(Ki|Mi|Gi)?$/.exec(resources?.limits?.["memory"] ?? "") ?? [];
  return number === undefined ? undefined : Number(number) * (UNITS[unit] ?? 1);
}

/** The command line that runs the container here. */
export function containedCommand(container: ContainerSpec, options: ContainedOptions): string[] {
  const { pod, image, ports } = options;
  const folder = join(options.folder, "containers");
  const local = (text: string): string => rewrite(options.expand(text), new Map(), ports);
  const env = Object.entries(options.env).map(([name, value]) => [name, rewrite(value, new Map(), ports)]);
  const memoryBytes = memoryLimit(container);
  const run: ContainerRun = {
    root: image.root,
    folder,
    args: [...(container.command ?? image.entrypoint), ...(container.args ?? [])].map(local),
    env: { ...image.env, ...Object.fromEntries(env) },
    mounts: (container.volumeMounts ?? []).map(({ name, mountPath, subPath = "", readOnly = false }) => ({
      source: join(options.volumeFolder(name), subPath),
      destination: mountPath,
      readOnly,
    })),
    security: securityOf(pod.spec["securityContext"], container.securityContext, image.user),
    ...(memoryBytes === undefined ? {} : { memoryBytes }),
  };
  return commandFor(runtime(image.root, folder), run);
}
