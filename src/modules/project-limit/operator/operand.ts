import { createHash } from "node:crypto";
import { at, canonical, isObject, type JsonObject, stringAt } from "../../../core/json.ts";
import type { OperandCertificates } from "../../../core/module/operator.ts";
import { refOf } from "../../../core/policy/policy-ref.ts";
import { projectRequestLimit } from "../kinds.ts";
import { OPERAND } from "../operand-names.ts";
import { OPERAND_FIELDS } from "../policy/operand-schema.ts";
import type { ProjectLimits } from "../policy/policy.ts";
import { prepareLimits } from "../policy/prepare.ts";

/** The operand of a ProjectRequestLimit, with all defaults filled in. */
export interface LimitOperand {
  readonly limits: ProjectLimits;
  readonly transport: "Direct" | "Aggregated";
  readonly topology: "DaemonSet" | "Deployment";
  readonly nodeSelector: Readonly<Record<string, string>>;
  readonly podLabels: Readonly<Record<string, string>>;
  readonly certificates: OperandCertificates;
  /** The file that the operand reads. */
  readonly configuration: string;
  /** Of the meaning of the file: another spelling of the same limits has the same hash. */
  readonly configHash: string;
}

/** The kind of the file. */
const CONFIGURATION = { apiVersion: OPERAND.configurationApiVersion, kind: OPERAND.configurationKind };

const CONTROL_PLANE = { "node-role.kubernetes.io/control-plane": "" };

/** `undefined`: the object has another name, and does not count. `byDefault`: the transport of a spec that names none. */
export function operandOf(
  owner: JsonObject,
  byDefault: LimitOperand["transport"] = "Direct",
): LimitOperand | undefined {
  const limits = prepareLimits(owner, refOf(projectRequestLimit, owner)).policy;
  if (limits === undefined) return undefined;
  const spec = isObject(owner["spec"]) ? owner["spec"] : {};
  const nodeSelector = labelsAt(spec, "nodeSelector");
  const transport = stringAt(spec, "transport");
  return {
    limits,
    transport: transport === "Aggregated" || transport === "Direct" ? transport : byDefault,
    topology: at(spec, "topology") === "Deployment" ? "Deployment" : "DaemonSet",
    nodeSelector: Object.keys(nodeSelector).length === 0 ? CONTROL_PLANE : nodeSelector,
    podLabels: labelsAt(spec, "podLabels"),
    certificates: certificatesOf(owner),
    configuration: configurationOf(spec),
    configHash: sha256(meaningOf(limits)),
  };
}

export function certificatesOf(owner: JsonObject): OperandCertificates {
  const mode = stringAt(owner, "spec", "certificates");
  return mode === "Own" || mode === "CertManager" ? mode : "ServiceCA";
}

function labelsAt(spec: JsonObject, field: string): Record<string, string> {
  const labels = at(spec, field);
  const pairs = isObject(labels) ? Object.entries(labels) : [];
  return Object.fromEntries(
    pairs.flatMap(([key, value]) => (typeof value === "string" ? [[key, value]] : [])),
  );
}

/** The limits as the administrator wrote them; how the operand runs is not for the operand. */
function configurationOf(spec: JsonObject): string {
  const limits = Object.entries(spec).filter(
    ([field, value]) => !Object.hasOwn(OPERAND_FIELDS, field) && value !== null,
  );
  return `${JSON.stringify({ ...CONFIGURATION, ...Object.fromEntries(limits) }, null, 2)}\n`;
}

/** One text per meaning. The API servers' timeout is only for the webhook. */
function meaningOf({
  ref: _ref,
  timeoutSeconds: _timeout,
  invalid: _invalid,
  ...limits
}: ProjectLimits): string {
  return canonical({
    ...limits,
    // Absent if it is the default, so that the hash of limits from before the field stays.
    extensions: limits.extensions ? undefined : false,
    rules: limits.rules.map((rule) => ({
      selector: Object.fromEntries(rule.selector),
      groups: sorted(rule.groups),
      users: sorted(rule.users),
      maxProjects: rule.maxProjects,
    })),
    exempt: { users: sorted(limits.exempt.users), groups: sorted(limits.exempt.groups) },
    trustedAnnotators: sorted(limits.trustedAnnotators),
  });
}

function sorted(names: ReadonlySet<string> | undefined): string[] | undefined {
  return names === undefined ? undefined : [...names].sort();
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
