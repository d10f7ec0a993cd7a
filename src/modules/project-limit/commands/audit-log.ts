import { at, isObject, type Json, stringAt } from "../../../core/json.ts";
import type { InputText } from "../../../core/module/command.ts";
import type { NamespaceOwnership, Ownerships } from "./backfill-command.ts";

/** Creates the namespace of a ProjectRequest: the request itself names the user. */
const ON_BEHALF = "system:serviceaccount:openshift-apiserver:";

/** The creators of namespaces, from an audit log with one event per line. If a name was reused, the last creation counts. */
export function readAuditLog({ name, text }: InputText): Ownerships {
  const found = new Map<string, NamespaceOwnership>();
  const errors: string[] = [];
  let unnamed = 0;
  for (const [i, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const event = parsed(line);
    if (event === undefined) errors.push(`${name}:${i + 1}: not an audit event in JSON`);
    else if (isCreation(event)) {
      const owner = ownershipOf(event);
      if (owner === undefined) unnamed += 1;
      else if (!owner.user.startsWith(ON_BEHALF)) found.set(owner.namespace, owner);
    }
  }
  if (unnamed > 0)
    errors.push(
      `${name}: ${unnamed} creation(s) without the name of the namespace: the audit policy must log namespaces at level Request or higher`,
    );
  return { found: [...found.values()], errors };
}

function parsed(line: string): Json | undefined {
  try {
    const event = JSON.parse(line) as Json;
    return isObject(event) ? event : undefined;
  } catch {
    return undefined;
  }
}

const CREATED = 201;

function isCreation(event: Json): boolean {
  const { resource, group, sub } = {
    resource: stringAt(event, "objectRef", "resource"),
    group: stringAt(event, "objectRef", "apiGroup") ?? "",
    sub: stringAt(event, "objectRef", "subresource") ?? "",
  };
  const wanted =
    (resource === "namespaces" && group === "") ||
    (resource === "projectrequests" && group === "project.openshift.io");
  return (
    wanted &&
    sub === "" &&
    stringAt(event, "stage") === "ResponseComplete" &&
    at(event, "responseStatus", "code") === CREATED &&
    !/[?&]dryRun=/.test(stringAt(event, "requestURI") ?? "")
  );
}

function ownershipOf(event: Json): NamespaceOwnership | undefined {
  const namespace =
    stringAt(event, "responseObject", "metadata", "name") ??
    stringAt(event, "objectRef", "name") ??
    stringAt(event, "requestObject", "metadata", "name");
  // Admission sees the impersonated user.
  const user = stringAt(event, "impersonatedUser", "username") ?? stringAt(event, "user", "username");
  const created = Date.parse(stringAt(event, "requestReceivedTimestamp") ?? "");
  if (!namespace || !user || Number.isNaN(created)) return undefined;
  return { namespace, user, created };
}
