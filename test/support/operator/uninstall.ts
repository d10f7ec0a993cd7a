// For tests: an installed usher, and the plan of its uninstall.
import { isObject, type JsonObject } from "../../../src/core/json.ts";
import { describeObject } from "../../../src/operator/install/apply.ts";
import { installedNamespaces } from "../../../src/operator/install/installed-namespaces.ts";
import { planUninstall } from "../../../src/operator/uninstall/uninstall-plan.ts";
import { installedObjects, SEATING, TestInstallation } from "./installation.ts";

export const INSTALLED = installedObjects();
export const NAMESPACE = "usher-system";
export const CRD = "CustomResourceDefinition seatings.test.usher.dev";

export function named(apiVersion: string, kind: string, name: string): JsonObject {
  return { apiVersion, kind, metadata: { name, namespace: NAMESPACE } };
}

/** An object with an ownerReference, as the owner's controller writes it. */
export function owned(object: JsonObject, kind: string, name: string): JsonObject {
  const uid = `uid of ${kind} ${NAMESPACE}/${name}`;
  const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
  return { ...object, metadata: { ...metadata, ownerReferences: [{ kind, name, uid, controller: true }] } };
}

export function installed(): TestInstallation {
  const cluster = new TestInstallation();
  for (const object of INSTALLED) cluster.have(object);
  return cluster;
}

export async function plan(cluster: TestInstallation, customResources = false) {
  const elsewhere = (await installedNamespaces(cluster.objects)).filter(
    ({ namespace }) => namespace !== NAMESPACE,
  );
  const removals = await planUninstall(cluster.objects, INSTALLED, [SEATING], { customResources, elsewhere });
  return {
    removals,
    going: removals.filter(({ change }) => change === "delete").map(({ live }) => describeObject(live)),
    of: (what: string) => removals.find(({ live }) => describeObject(live) === what),
  };
}
