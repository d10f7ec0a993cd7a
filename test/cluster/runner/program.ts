// The command line of a container on this machine.
import { cpSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { OPERAND } from "../../../src/modules/project-limit/operand-names.ts";
import { cacheFolder } from "../binaries/places.ts";
import type { Program } from "../processes/process.ts";
import { containedCommand, type ImageRoot } from "./contained.ts";
import { environmentOf, expand } from "./environment.ts";
import type { KubeletApi } from "./kubelet-api.ts";
import { isFilled } from "./mount.ts";
import type { ContainerSpec, Pod } from "./pod-spec.ts";
import { type Ports, rewrite } from "./rewrite.ts";

const REPOSITORY = join(import.meta.dirname, "..", "..", "..");

/**
 * The program that an image starts, by the last part of its name: a command of this clone (`{ usher: ["node",
 * "src/cli/main.ts"] }`), or a real image.
 */
export type Images = Readonly<Record<string, readonly string[] | ImageRoot>>;

function isRoot(image: Images[string] | undefined): image is ImageRoot {
  return image !== undefined && "root" in image;
}

/** `registry.example/team/usher:v1@sha256:…` is `usher`. */
export function imageName(image: string): string {
  const last = image.split("@")[0]?.split("/").at(-1) ?? "";
  return last.split(":")[0] ?? "";
}

/**
 * Puts a container's mounts below its root folder, as links, because several containers may share a volume. A subPath
 * mount of a ConfigMap or Secret is a copy: it keeps the content of the container's start.
 */
export function mount(
  root: string,
  { volumeMounts = [] }: ContainerSpec,
  volumeFolder: (name: string) => string,
  starting = true,
): ReadonlyMap<string, string> {
  const paths = new Map<string, string>();
  for (const { name, mountPath, subPath } of volumeMounts) {
    const place = join(root, mountPath);
    paths.set(mountPath.replace(/\/+$/, ""), place);
    if (!starting) continue;
    const source = join(volumeFolder(name), subPath ?? "");
    mkdirSync(dirname(place), { recursive: true });
    rmSync(place, { force: true, recursive: true });
    if (subPath === undefined || !isFilled(volumeFolder(name))) symlinkSync(source, place);
    else cpSync(source, place, { recursive: true, dereference: true });
  }
  return paths;
}

/** Built-in paths and addresses of the image's program, as flags: local processes share the machine, so they must be given. */
const BUILT_IN: Readonly<Record<string, readonly string[]>> = {
  [OPERAND.program]: [
    "--bind=0.0.0.0",
    `--port=${OPERAND.port}`,
    `--ops-port=${OPERAND.opsPort}`,
    `--tls-cert=${OPERAND.certificateFolder}/tls.crt`,
    `--tls-key=${OPERAND.certificateFolder}/tls.key`,
  ],
};

function withBuiltIn(container: ContainerSpec): ContainerSpec {
  const flags = BUILT_IN[container.command?.[0] ?? ""];
  return flags === undefined ? container : { ...container, args: [...(container.args ?? []), ...flags] };
}

export interface ProgramContext {
  readonly pod: Pod;
  readonly api: KubeletApi;
  readonly folder: string;
  readonly ports: Ports;
  readonly podIP: string;
  readonly hostIP: string;
  readonly server: URL;
  readonly images: Images;
  readonly volumeFolder: (name: string) => string;
  /** False for a command beside the container's own. */
  readonly starting: boolean;
}

/** Only what a container would have, so that nothing works because of the test's own environment. */
function surroundings({ pod, server }: ProgramContext): Record<string, string> {
  return {
    HOSTNAME: pod.metadata.name,
    KUBERNETES_SERVICE_HOST: server.hostname,
    KUBERNETES_SERVICE_PORT: server.port,
    KUBERNETES_SERVICE_PORT_HTTPS: server.port,
  };
}

export async function programOf(spec: ContainerSpec, context: ProgramContext): Promise<Program> {
  const container = withBuiltIn(spec);
  const { pod, api, folder, ports, podIP, hostIP } = context;
  const image = context.images[imageName(container.image)];
  const values = await environmentOf(pod, container, api, podIP, hostIP);
  const common = {
    name: `${pod.metadata.namespace}/${pod.metadata.name}/${container.name}`,
    log: join(folder, `${container.name}.log`),
    cwd: REPOSITORY,
  };
  if (isRoot(image)) {
    const env = { ...surroundings(context), ...Object.fromEntries(values) };
    const filled = (text: string): string => expand(text, values);
    const [command = "", ...args] = containedCommand(container, { ...context, image, expand: filled, env });
    return { ...common, command, args, env: { PATH: process.env["PATH"] } };
  }
  if (container.command === undefined && image === undefined)
    throw new Error(`nothing is known to start for the image ${container.image}, and there is no command`);
  const root = join(folder, container.name);
  const home = join(root, "home");
  mkdirSync(home, { recursive: true });
  const paths = mount(root, container, context.volumeFolder, context.starting);
  const local = (text: string): string => rewrite(expand(text, values), paths, ports);
  // An image's program is already a local path; its other programs are that one under other names.
  const [program = "", ...more] = container.command ?? [];
  const isOther = program in BUILT_IN;
  const own = isOther ? [...(image ?? []), ...more.map(local)] : container.command?.map(local);
  const command = own ?? image ?? [];
  const [first = "", ...rest] = [...command, ...(container.args ?? []).map(local)];
  const env: NodeJS.ProcessEnv = {
    PATH: process.env["PATH"],
    HOME: home,
    ...surroundings(context),
    ...(isOther ? { USHER_CALLED_AS: program } : {}),
    USHER_RUN_ROOT: root,
    // A real image holds programs that are ready to run. Here Node would strip the types at every start, which takes
    // half of the start time.
    NODE_COMPILE_CACHE: join(cacheFolder(process.env), "compiled"),
  };
  for (const [port, localPort] of ports) env[`USHER_RUN_PORT_${port}`] = String(localPort);
  for (const [name, value] of values) env[name] = rewrite(value, paths, ports);
  return { ...common, command: first === "node" ? process.execPath : first, args: rest, env };
}
