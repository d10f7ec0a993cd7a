import type { z } from "zod";
import type { Gates } from "../installation/gates.ts";
import type { Installation } from "../installation/installation.ts";
import { configuredValues, holds, type SettingCondition } from "../installation/setting-condition.ts";
import type { JsonObject } from "../json.ts";
import type { View } from "../view/view.ts";
import type { ConfigurationFormat } from "./configuration.ts";
import type { PolicyRef } from "./policy-ref.ts";
import type { Problem } from "./problem.ts";

/** A column of `kubectl get`. */
export interface Column {
  readonly name: string;
  readonly type: "string" | "integer" | "boolean" | "date";
  readonly jsonPath: string;
  readonly description?: string;
  /** Above 0 only with `-o wide`. */
  readonly priority?: number;
}

/** A rule that the API server itself checks, in CEL. Each corresponds to a part of `check`. */
export interface CelRule {
  readonly rule: string;
  readonly message: string;
}

export interface KindVersion {
  readonly name: string;
  /** Strict: an unknown field must be found, not stripped. */
  readonly spec: z.ZodType;
  readonly status?: z.ZodType;
  readonly celRules?: readonly CelRule[];
  readonly columns?: readonly Column[];
  readonly storage: boolean;
  /** Turns an object of this version into the one inner form. @default as it is */
  readonly upgrade?: (object: JsonObject) => JsonObject;
}

/** A prepared policy, ready to be indexed. `policy` is absent if nothing of it can be used. */
export interface Prepared<Policy = unknown> {
  readonly policy: Policy | undefined;
  readonly problems: readonly Problem[];
}

/** The input of a CRD. */
export interface CustomResource {
  readonly group: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames?: readonly string[];
  readonly scope: "Cluster" | "Namespaced";
  readonly summary: string;
  readonly versions: readonly KindVersion[];
  /**
   * Usher registers the CRD only while these hold, and ignores its objects otherwise. If it does not, the kind may not
   * be served.
   * @default always
   */
  readonly registered?: readonly SettingCondition[];
  /** `never`: a CRD of another owner, such as OpenShift or OLM, is used as it is. @default at an administrator's request */
  readonly takeOver?: "never";
}

/** A kind for usher's own state, such as a ledger. Its objects are not policies; to read them, a module declares a read. */
export interface StateKind extends CustomResource {
  /** Usher's permissions on its objects, beside reading. Users get none. */
  readonly verbs: readonly ("create" | "update" | "patch" | "delete")[];
}

/** Changes of usher's result for stored objects since an earlier version. An upgrade lists these objects. */
export interface ChangedAnswer {
  /** The field of the spec whose meaning changed: an earlier CRD describes it differently. */
  readonly field: string;
  readonly concerns: (object: JsonObject) => boolean;
  /** The new behaviour, and how to keep the old one. */
  readonly meaning: string;
}

/** A first object of a kind, with cases of a test suite that it decides. */
export interface Sample {
  readonly name: string;
  /** No object of another name counts. @default any name does */
  readonly nameIsFixed?: true;
  readonly namespace?: string;
  readonly spec: JsonObject;
  /** The spec of an UsherConfiguration under which the kind counts. @default the defaults */
  readonly configuration?: JsonObject;
  /** What cases need beside the policy, such as namespaces. @default nothing */
  readonly objects?: readonly JsonObject[];
  /** As a TestSuite has them. */
  readonly cases: readonly JsonObject[];
  /** Mutants that no case can notice, as a TestSuite has them. @default none */
  readonly equivalent?: readonly JsonObject[];
}

/** A kind of policies that a module defines: a custom resource, or a configuration file of the same standing. */
export interface Kind<Policy = unknown> extends CustomResource {
  /** `Cluster`: its objects are in namespaces and act on the whole cluster, so who may write them is granted apart. @default as its scope */
  readonly reach?: "Cluster";
  /** The role with permission to write its objects, if separate. @default the role for all cluster-scoped kinds */
  readonly grantedBy?: string;
  /** `file`: read at start, never served by an API server. */
  readonly standing: "resource" | "file";
  /** For kinds of standing `file` that are not written as objects with metadata and spec. */
  readonly configuration?: ConfigurationFormat;
  /** Of a kind of standing `file`: with errors it counts as far as it can be read, as a policy does. @default it does not count at all */
  readonly partial?: true;
  /**
   * Checks beyond the schema: problems that need logic or the view. Gets the installation if an object is written into
   * it; problems specific to it are warnings. `now`, in milliseconds since 1970, is given while it is being written.
   * Never throws.
   */
  readonly check?: (
    object: JsonObject,
    view: View,
    installation?: Installation,
    now?: number,
  ) => readonly Problem[];
  /** @default none */
  readonly changedAnswer?: ChangedAnswer;
  /** Its module is off: no user-facing role has permissions on its objects. @default its module is on */
  readonly ignored?: true;
  /** The status fields of other programs. @default none: the status belongs to usher */
  readonly othersStatus?: (status: JsonObject) => JsonObject;
  /** A spec that the CRD accepts and `check` refuses: its refusal shows that the API server calls usher. */
  readonly refused?: JsonObject;
  /** What `usher init` writes. @default the kind is not one to begin with */
  readonly sample?: (now: number) => Sample;
  /** Runs once for each object and version. Never throws; problems belong to this policy. */
  readonly prepare: (object: JsonObject, ref: PolicyRef) => Prepared<Policy>;
}

/** The resource name of a kind: `podschedulingpolicies.kupid.gardener.cloud`. */
export function kindResource(kind: Pick<Kind, "group" | "plural">): string {
  return kind.group === "" ? kind.plural : `${kind.plural}.${kind.group}`;
}

/** The configuration that decides whether a kind counts: an assembly has it, and so has the context of an evaluation. */
export interface ConfiguredKind {
  readonly installation: Installation;
  readonly gates: Gates;
}

/** Why usher ignores all objects of a kind in this configuration. A kind of another owner has its effect elsewhere. */
export function ignoredBecause(
  { kind, registered = [], takeOver }: CustomResource,
  { installation, gates }: ConfiguredKind,
): string | undefined {
  if (takeOver === "never") return undefined;
  const values = configuredValues(installation, gates);
  const unmet = registered.find((condition) => !holds([condition], values));
  return unmet === undefined
    ? undefined
    : `usher ignores this ${kind}: ${describeCondition(unmet)} in the configuration`;
}

function describeCondition(condition: SettingCondition): string {
  if ("listed" in condition) return `it is not in spec.${condition.listed.join(".")}`;
  return `spec.${condition.setting.join(".")} is not ${condition.equals}`;
}
