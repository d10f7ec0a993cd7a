import { type JsonObject, stringAt } from "../json.ts";
import { nameOf, namespaceOf } from "../kubernetes/object.ts";

export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

export interface GroupVersionResource {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
}

export const OPERATIONS = ["CREATE", "UPDATE", "DELETE", "CONNECT"] as const;
export type Operation = (typeof OPERATIONS)[number];

/** The sender, as authenticated by the API server; under impersonation the impersonated identity. */
export interface UserInfo {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: JsonObject;
}

/**
 * One admission request, as the API server sends it (AdmissionReview v1). `uid` is new at every call, also for the same
 * object: nothing may be keyed by it.
 */
export interface AdmissionRequest {
  readonly uid: string;
  readonly kind: GroupVersionKind;
  readonly resource: GroupVersionResource;
  readonly subResource: string;
  /** Empty for `generateName`, whose name does not exist yet when mutating. */
  readonly name: string;
  /** Empty for cluster-scoped objects. */
  readonly namespace: string;
  readonly operation: Operation;
  readonly userInfo: UserInfo;
  readonly object: JsonObject | undefined;
  readonly oldObject: JsonObject | undefined;
  readonly dryRun: boolean;
  readonly options: JsonObject | undefined;
  /** Created from a manifest: no API server has validated the object. */
  readonly unvalidated?: true;
  /** Why its objects could not be read: then it has none, for any operation, and each hook's `tooLarge` decides. */
  readonly tooLarge?: string;
}

/** A request that no API server has sent: a CREATE of this object as a dry run, unless `rest` says otherwise. */
export function supposedRequest(
  { group, version, kind, resource }: GroupVersionKind & GroupVersionResource,
  object: JsonObject,
  rest: Pick<AdmissionRequest, "uid" | "userInfo"> & Partial<AdmissionRequest>,
): AdmissionRequest {
  return {
    kind: { group, version, kind },
    resource: { group, version, resource },
    subResource: "",
    name: nameOf(object),
    namespace: namespaceOf(object),
    operation: "CREATE",
    object,
    oldObject: undefined,
    dryRun: true,
    options: undefined,
    ...rest,
  };
}

/** The name of a resource in stores, indexes and RBAC: `pods`, `deployments.apps`. */
export function resourceName(resource: { readonly group: string; readonly resource: string }): string {
  return resource.group === "" ? resource.resource : `${resource.resource}.${resource.group}`;
}

/** The user-facing name of the object of a request: `Deployment shop/web`, `Pod shop/web-*` for generateName. */
export function describeRequest(request: AdmissionRequest): string {
  const generated = stringAt(request.object, "metadata", "generateName") ?? "";
  const name = request.name !== "" ? request.name : `${generated}*`;
  return `${request.kind.kind} ${request.namespace === "" ? "" : `${request.namespace}/`}${name}`;
}
