import {
  at,
  equal,
  isObject,
  type Json,
  type JsonObject,
  listAt,
  own,
  stringAt,
} from "../../../core/json.ts";
import type { Path } from "../../../core/path.ts";

/** A field to fill in, below the pod's spec. */
export interface HardenedField {
  readonly path: Path;
  readonly value: Json;
  /** The pod has this very value already. */
  readonly present: boolean;
}

type Containers = readonly { readonly path: Path; readonly container: JsonObject }[];

/** One field that hardening fills in if absent. */
interface Rule {
  readonly os: "linux" | "windows";
  /** Below the pod's spec, or below each container. */
  readonly of: "pod" | "containers";
  readonly path: Path;
  readonly value: Json;
  /** If the API server would refuse the field, or it would prevent a container from starting. */
  readonly unless?: (context: { readonly spec: JsonObject; readonly container: Json | undefined }) => boolean;
}

/**
 * The fields that restricted requires and an OS allows.
 *
 * - Absent fields only; a field with any value stays, also one that restricted refuses.
 * - No field that the API server forbids for the OS, or refuses beside another field of the same pod.
 * - No field that prevents a container from starting that the same spec runs as root.
 */
const RULES: readonly Rule[] = [
  {
    os: "linux",
    of: "pod",
    path: ["securityContext", "runAsNonRoot"],
    value: true,
    unless: ({ spec }) => containersOf(spec).some(({ container }) => runsAsRoot(spec, container)),
  },
  {
    os: "linux",
    of: "pod",
    path: ["securityContext", "seccompProfile"],
    value: { type: "RuntimeDefault" },
  },
  {
    os: "linux",
    of: "containers",
    path: ["securityContext", "allowPrivilegeEscalation"],
    value: false,
    // The API server refuses both together.
    unless: ({ container }) => isPrivileged(container),
  },
  {
    os: "linux",
    of: "containers",
    path: ["securityContext", "capabilities", "drop"],
    value: ["ALL"],
    unless: ({ container }) => isPrivileged(container),
  },
  {
    os: "windows",
    of: "pod",
    path: ["securityContext", "runAsNonRoot"],
    value: true,
    unless: ({ spec }) => hasHostProcess(spec) || isAdministrator(spec),
  },
  {
    os: "windows",
    of: "pod",
    path: ["securityContext", "windowsOptions", "runAsUserName"],
    value: "ContainerUser",
    // HostProcess containers run as users of the host, and an account of a directory brings its own.
    unless: ({ spec }) => hasHostProcess(spec) || hasCredentialSpec(spec),
  },
];

/**
 * The fields that a pod of this OS does not have, or has as hardening would set them, in the order of the rules. Linear
 * in the spec.
 */
export function hardenedFields(spec: JsonObject, os: string): HardenedField[] {
  const fields: HardenedField[] = [];
  const containers = containersOf(spec);
  for (const rule of RULES) {
    if (rule.os !== os) continue;
    const { path, value } = rule;
    if (rule.of === "pod") {
      const found = stateOf(spec, rule);
      if (found !== "other" && rule.unless?.({ spec, container: undefined }) !== true)
        fields.push({ path, value, present: found === "present" });
      continue;
    }
    for (const { path: place, container } of containers) {
      const found = stateOf(container, rule);
      if (found !== "other" && rule.unless?.({ spec, container }) !== true)
        fields.push({ path: [...place, ...path], value, present: found === "present" });
    }
  }
  return fields;
}

/** Also another value if a parent is not an object: the API server refuses such a pod by itself. */
function stateOf(object: JsonObject, { path, value }: Rule): "absent" | "present" | "other" {
  let here: Json | undefined = object;
  for (const step of path) {
    if (here === undefined || here === null) return "absent";
    if (!isObject(here)) return "other";
    here = own(here, String(step));
  }
  if (here === undefined || here === null) return "absent";
  return equal(here, value) ? "present" : "other";
}

/** Ephemeral containers are added later, by a separate request. */
function containersOf(spec: JsonObject): Containers {
  return ["initContainers", "containers"].flatMap((list) =>
    listAt(spec, list).flatMap((container, i) =>
      isObject(container) ? [{ path: [list, i], container }] : [],
    ),
  );
}

/** The spec itself sets the root user, and nothing in the container overrides it. */
function runsAsRoot(spec: JsonObject, container: JsonObject): boolean {
  if (typeof at(container, "securityContext", "runAsNonRoot") === "boolean") return false;
  const user = at(container, "securityContext", "runAsUser") ?? at(spec, "securityContext", "runAsUser");
  return user === 0;
}

function isPrivileged(container: Json | undefined): boolean {
  if (at(container, "securityContext", "privileged") === true) return true;
  const added = listAt(container, "securityContext", "capabilities", "add");
  return added.some((name) => name === "SYS_ADMIN" || name === "CAP_SYS_ADMIN");
}

/** The windowsOptions of the pod and of its containers. */
function windowsOptionsOf(spec: JsonObject): Json[] {
  return [spec, ...containersOf(spec).map(({ container }) => container)].flatMap((one) => {
    const options = at(one, "securityContext", "windowsOptions");
    return options === undefined ? [] : [options];
  });
}

function hasHostProcess(spec: JsonObject): boolean {
  return windowsOptionsOf(spec).some((options) => own(options, "hostProcess") === true);
}

function hasCredentialSpec(spec: JsonObject): boolean {
  return windowsOptionsOf(spec).some(
    (options) =>
      stringAt(options, "gmsaCredentialSpec") !== undefined ||
      stringAt(options, "gmsaCredentialSpecName") !== undefined,
  );
}

/** The kubelet refuses this user with runAsNonRoot. */
function isAdministrator(spec: JsonObject): boolean {
  return windowsOptionsOf(spec).some(
    (options) => stringAt(options, "runAsUserName")?.toLowerCase() === "containeradministrator",
  );
}
