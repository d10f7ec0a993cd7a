import type { EventToWrite } from "../decision/finding.ts";
import type { JsonObject } from "../json.ts";
import type { ServerVersion } from "../kubernetes/versions.ts";
import type { DeclaredRole } from "./rights.ts";

/** An object by its apiVersion, kind, namespace and name. */
export type OperandReference = JsonObject;

/** Who makes the operand's certificate. */
export type OperandCertificates = "ServiceCA" | "CertManager" | "Own";

/** The operand's certificate as the Secret holds it. */
export interface OperandCertificate {
  /** Of the certificate and its key. */
  readonly hash: string;
  /** Whether API servers accept it: until then the operand keeps the one that it has. */
  readonly trusted: boolean;
}

/** All that a plan may look at. */
export interface OperandState {
  /** The custom resource, as it is stored. */
  readonly owner: JsonObject;
  /** As it was when its spec was last seen valid: the operand is kept so while it is not. The same where that is unknown. */
  readonly valid: JsonObject;
  /** An object of `observed`, as it is stored. */
  readonly live: (reference: OperandReference) => JsonObject | undefined;
  /** What the operand runs. */
  readonly image: string;
  /** Whether a pod behind the Service is ready. */
  readonly ready: boolean;
  /** Absent while the Secret does not hold one. */
  readonly certificate: OperandCertificate | undefined;
  /** The authorities to trust, PEM in base64; absent where an injector writes them. */
  readonly caBundle: string | undefined;
  /** The unguessable first segment of the webhook's path. */
  readonly pathToken: string;
  /** Secrets to apply before all else, and those that another is to make from now on. */
  readonly secrets: { readonly apply: readonly JsonObject[]; readonly remove: readonly OperandReference[] };
  readonly serverVersion: ServerVersion | undefined;
  /** Why the last attempt failed. */
  readonly failure: string | undefined;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** In their order: a step that fails is tried again, and those after it wait. */
export type OperandStep = { readonly apply: JsonObject } | { readonly remove: OperandReference };

export interface OperandPlan {
  readonly steps: readonly OperandStep[];
  /** The operator's part of the status, to be applied. */
  readonly status: JsonObject;
}

/** What an object of the kind that does not count must show. */
export interface IgnoredObject {
  readonly status: JsonObject;
  readonly events: readonly EventToWrite[];
}

/**
 * An operand that one custom resource of a module asks for: `usher operator MODULE` keeps it in a cluster. The plan is pure; reading,
 * certificates and writing are the shell's.
 */
export interface Operator {
  /** The operator's own Deployment, account, roles and Lease, and what it owns fields as. */
  readonly name: string;
  /** Of the operator and the operand. */
  readonly namespace: string;
  /** The environment variable that has the operand's image. */
  readonly imageVariable: string;
  /** The one custom resource that counts. */
  readonly resource: OperandReference;
  /** The Service that API servers call, and the Secret that its certificate is in. */
  readonly service: string;
  readonly servingSecret: string;
  /** The Secret and its key that tell the operand the tokens of the webhook's path. */
  readonly paths: { readonly secret: string; readonly key: string };
  /** What is registered last, and goes first. */
  readonly webhook: OperandReference;
  /** What the plan looks at, beside the custom resource. */
  readonly observed: readonly OperandReference[];
  /** Whether a custom resource can be followed. */
  readonly isValid: (owner: JsonObject) => boolean;
  readonly certificatesOf: (owner: JsonObject) => OperandCertificates;
  /** The authorities that the operand's certificate is checked by, PEM in base64; absent where nothing asks the operand. */
  readonly publishedBundle: (live: OperandState["live"]) => string | undefined;
  readonly plan: (state: OperandState) => OperandPlan;
  /** For an object with a name that does not count; `undefined` where it does. */
  readonly ignored: (object: JsonObject, now: number) => IgnoredObject | undefined;
  /** What the operator may do, with all that it grants. */
  readonly roles: readonly DeclaredRole[];
}
