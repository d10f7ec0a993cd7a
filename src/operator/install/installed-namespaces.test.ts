import { expect, test } from "vitest";
import { installedObjects, TestInstallation } from "../../../test/support/operator/installation.ts";
import type { JsonObject } from "../../core/json.ts";
import { installedNamespaces } from "./installed-namespaces.ts";

const INSTALLED = installedObjects();
const HALL = installedObjects("hall");
const INDICATIONS = /^(ClusterRoleBinding|(Mutating|Validating)WebhookConfiguration|Deployment)$/;

function indications(objects: readonly JsonObject[]): JsonObject[] {
  return objects.filter((object) => INDICATIONS.test(String(object["kind"])));
}

test("a cluster without usher has none", async () => {
  expect(await installedNamespaces(new TestInstallation().objects)).toEqual([]);
});

test.each(indications(HALL).map((object) => [`${object["kind"]}`, object] as const))(
  "each %s alone identifies usher's namespace",
  async (_, object) => {
    const cluster = new TestInstallation();
    cluster.have(object);
    const [found, second] = await installedNamespaces(cluster.objects);
    expect(found?.namespace).toBe("hall");
    expect(found?.by).toContain(String(object["kind"]));
    expect(second).toBeUndefined();
  },
);

test("each namespace is listed once", async () => {
  const cluster = new TestInstallation();
  for (const object of [...INSTALLED, ...HALL]) cluster.have(object);
  const found = await installedNamespaces(cluster.objects);
  expect(found.map(({ namespace }) => namespace).sort()).toEqual(["hall", "usher-system"]);
});

test("an object of another owner with usher's name does not count", async () => {
  const cluster = new TestInstallation();
  for (const object of indications(HALL)) {
    const { name, namespace } = object["metadata"] as JsonObject;
    cluster.have({ ...object, metadata: { name, ...(namespace === undefined ? {} : { namespace }) } });
  }
  expect(await installedNamespaces(cluster.objects)).toEqual([]);
});

test("an entry or a subject of another owner in an object of usher's does not count", async () => {
  const cluster = new TestInstallation();
  for (const object of indications(HALL)) {
    const service = { name: "other", namespace: "foyer" };
    if (object["webhooks"] !== undefined)
      cluster.have({ ...object, webhooks: [{ name: "a.other", clientConfig: { service } }] });
    if (object["subjects"] !== undefined)
      cluster.have({ ...object, subjects: [{ kind: "ServiceAccount", ...service }] });
  }
  expect(await installedNamespaces(cluster.objects)).toEqual([]);
});

test("without permission to list Deployments, the other objects decide", async () => {
  const cluster = new TestInstallation();
  for (const object of HALL) cluster.have(object);
  cluster.refusing = (_, path) => path === "/apis/apps/v1/deployments";
  expect((await installedNamespaces(cluster.objects)).map(({ namespace }) => namespace)).toEqual(["hall"]);
});
