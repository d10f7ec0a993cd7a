// Requests as an API server sends them, for every object of the examples: its creation, changes and deletion by several
// users.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { isObject, type JsonObject, stringAt } from "../../src/core/json.ts";

const USERS = [
  { username: "kubernetes-admin", groups: ["system:masters", "system:authenticated"] },
  { username: "bob", groups: ["system:authenticated", "system:authenticated:oauth"] },
  {
    username: "system:serviceaccount:shop:builder",
    groups: ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"],
  },
];

const CLUSTER_KINDS =
  /^(Namespace|Node|ProjectRequest|User|RuntimeClass|.*Cluster.*|NodeSchedulingPolicy.*|.*Limit|NodeGuard.*)$/;

function objectsIn(folder: string): JsonObject[] {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) =>
    /\.ya?ml$/.test(file),
  );
  return files.sort().flatMap((file) =>
    parseAllDocuments(readFileSync(join(folder, file), "utf8")).flatMap((document) => {
      const value = document.toJS() as JsonObject | null;
      return isObject(value ?? undefined) && stringAt(value, "metadata", "name") !== undefined
        ? [value as JsonObject]
        : [];
    }),
  );
}

/** A typical client change: a label, and for pods a toleration and another image. */
function changed(object: JsonObject): JsonObject {
  const copy = structuredClone(object) as JsonObject & { metadata: { labels?: Record<string, string> } };
  copy.metadata.labels = { ...copy.metadata.labels, changed: "yes" };
  const spec = copy["spec"] as { tolerations?: unknown[]; containers?: { image?: string }[] } | undefined;
  if (spec?.containers !== undefined) {
    spec.tolerations = [...(spec.tolerations ?? []), { operator: "Exists" }];
    for (const container of spec.containers) container.image = "changed:2";
  }
  return copy;
}

export function recordedRequests(folder: string): JsonObject[] {
  let number = 0;
  const review = (
    object: JsonObject,
    user: JsonObject,
    operation: string,
    before?: JsonObject,
  ): JsonObject => {
    const [version = "", group = ""] = String(object["apiVersion"]).split("/").toReversed();
    const kind = String(object["kind"]);
    const resource = `${kind.toLowerCase().replace(/y$/, "ie")}s`;
    const place = CLUSTER_KINDS.test(kind) ? "" : (stringAt(object, "metadata", "namespace") ?? "shop");
    number += 1;
    return {
      apiVersion: "admission.k8s.io/v1",
      kind: "AdmissionReview",
      request: {
        uid: `u-${number}`,
        kind: { group, version, kind },
        resource: { group, version, resource },
        name: stringAt(object, "metadata", "name") ?? "",
        ...(place === "" ? {} : { namespace: place }),
        operation,
        userInfo: user,
        object: operation === "DELETE" ? null : object,
        oldObject: before ?? null,
        dryRun: false,
        options: null,
      },
    };
  };
  return objectsIn(folder).flatMap((object) =>
    USERS.flatMap((user) => [
      review(object, user, "CREATE"),
      review(changed(object), user, "UPDATE", object),
      review(object, user, "UPDATE", changed(object)),
      review(object, user, "DELETE", object),
    ]),
  );
}
