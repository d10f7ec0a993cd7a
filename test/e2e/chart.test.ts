// The chart renders what usher registers; no cluster is needed to check.
import { expect, test } from "vitest";
import { allSwitches, type Switch, together } from "../../deploy/generate/chart/switches.ts";
import { keyOf, registered } from "../../deploy/generate/installation/registered.ts";
import { at, isObject, type Json, type JsonObject, stringAt } from "../../src/core/json.ts";
import { CHART, describeHelm, documents, type Helm } from "./fixtures/helm.ts";

/** Objects that the chart does not render: Helm creates the namespace, and usher itself writes its webhooks. */
const NOT_IN_CHART = ["Namespace usher-system"];

/** Objects of the chart beside those that usher registers: Helm's hooks, each deleted when it is done. */
const isHook = (object: JsonObject) => at(object, "metadata", "annotations", "helm.sh/hook") !== undefined;

/** Labels that name the installer of an object. */
const BY_HELM = ["app.kubernetes.io/instance", "helm.sh/chart"];
const MANAGED_BY = "app.kubernetes.io/managed-by";

/** Without permitted differences. */
function comparable(object: JsonObject): JsonObject {
  const changed = (key: string, value: Json): Json | undefined => {
    if (BY_HELM.includes(key)) return undefined;
    if (key === MANAGED_BY && (value === "Helm" || value === "usher")) return "Helm or usher";
    // A hash of the configuration's text: the chart's templates compute another hash than core.
    if (key === "usher.dev/configuration") return "a hash";
    // The text of the configuration: fields may be in another order.
    if (key === "configuration.yaml" && typeof value === "string") return JSON.parse(value) as Json;
    return value;
  };
  return JSON.parse(JSON.stringify(object, changed)) as JsonObject;
}

function byKey(objects: readonly JsonObject[]): Record<string, JsonObject> {
  const found = objects.map((object) => [keyOf(object), comparable(object)] as const);
  expect(new Set(found.map(([key]) => key)).size).toBe(found.length);
  return Object.fromEntries(found.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The output of `usher manifests` for a configuration, without objects that the chart must not have. */
async function expected(configuration: JsonObject, namespace: string): Promise<Record<string, JsonObject>> {
  const objects = await registered(configuration, namespace);
  return byKey(
    objects.filter(
      (object) =>
        !NOT_IN_CHART.includes(keyOf(object)) &&
        object["kind"] !== "Namespace" &&
        !(stringAt(object, "kind") ?? "").endsWith("WebhookConfiguration"),
    ),
  );
}

async function rendered(
  helm: Helm,
  values: JsonObject,
  ...args: string[]
): Promise<Record<string, JsonObject>> {
  const objects = await helm.template(values, ...args);
  return byKey(objects.filter((object) => !isHook(object)));
}

function withoutCrds(objects: Record<string, JsonObject>): Record<string, JsonObject> {
  const kept = Object.entries(objects).filter(([key]) => !key.startsWith("CustomResourceDefinition "));
  return Object.fromEntries(kept);
}

/** Settings that are lists: kinds whose permissions are granted one by one, and networks. */
const LISTS: Switch = {
  setting: "lists",
  condition: "",
  configuration: {
    workloads: [
      {
        group: "argoproj.io",
        version: "v1alpha1",
        kind: "Rollout",
        resource: "rollouts",
        template: "spec.template",
      },
      { group: "example.com", version: "v1", kind: "Fleet", resource: "fleets", template: "spec.template" },
    ],
    networkPolicy: { enabled: true, webhookCidrs: ["10.0.0.0/28", "fd00::/64"] },
    modules: { placement: { repairDrift: true, resources: ["statefulsets.apps", "rollouts.argoproj.io"] } },
  },
};

/** The chart has some settings of the configuration as separate values. */
function valuesOf({
  manageCrds = true,
  controlPlaneNodes = false,
  networkPolicy = {},
  ...configuration
}: JsonObject): JsonObject {
  return { configuration, crds: { manage: manageCrds }, controlPlaneNodes, networkPolicy };
}

/** Each combined with the next one of another setting. */
function neighbours(switches: readonly Switch[]): Switch[][] {
  return switches.flatMap((one, index) => {
    const next = switches[(index + 1) % switches.length];
    return next === undefined || next.setting === one.setting ? [] : [[one, next]];
  });
}

/** All of them, one of each setting. */
function atOnce(switches: readonly Switch[]): Switch[] {
  return switches.filter(
    ({ setting }, index) => switches.findIndex((one) => one.setting === setting) === index,
  );
}

describeHelm("the chart", (helm) => {
  test("passes strict lint", async () => {
    const { code, out, err } = await helm().run("lint", "--strict", CHART);
    expect(code, out + err).toBe(0);
  });

  test("supports the tested releases of Kubernetes, also under a distribution's version", async () => {
    const on = (release: string) => helm().run("template", "usher", CHART, "--kube-version", release);
    const { code, err } = await on("1.32.9");
    expect(code).toBe(1);
    expect(err).toContain(
      "chart requires kubeVersion: >=1.33.0-0 which is incompatible with Kubernetes v1.32.9",
    );
    for (const release of ["1.33.0", "1.33.4-gke.1245000", "1.37.1+k3s1"])
      expect((await on(release)).code, release).toBe(0);
  });

  test("equals usher manifests with default values, object by object", async () => {
    expect(await rendered(helm(), {}, "--include-crds", "-n", "usher-system")).toEqual(
      await expected({}, "usher-system"),
    );
  });

  test.each([
    ["another release and namespace", "hall-admission", "hall"],
    ["names that YAML takes for numbers and booleans", "on", "123"],
    ["the longest release name", "r".repeat(53), "kube-system"],
  ])("equals usher manifests under %s", async (_what, release, namespace) => {
    const { out, err } = await helm().run("template", release, CHART, "--include-crds", "-n", namespace);
    const objects = documents(out).filter((object) => !isHook(object));
    expect(byKey(objects), err).toEqual(await expected({}, namespace));
  });

  test("equals usher manifests with every setting that affects registration, and with two or all of them", async () => {
    const switches = await allSwitches();
    const some = [...switches.map((one) => [one]), ...neighbours(switches), atOnce(switches), [LISTS]];
    await Promise.all(
      some.map(async (chosen) => {
        const configuration = together(...chosen.map((one) => one.configuration));
        const objects = await rendered(helm(), valuesOf(configuration), "-n", "hall");
        // The folder crds has the CRDs of the default configuration; a hook applies the others.
        expect(objects, JSON.stringify(configuration)).toEqual(
          withoutCrds(await expected(configuration, "hall")),
        );
      }),
    );
  });

  test("depends only on values and release", async () => {
    const render = async (...args: string[]) =>
      (await helm().run("template", "usher", CHART, "-n", "hall", ...args)).out;
    const once = await render();
    expect(await render()).toBe(once);
    expect(await render("--kube-version", "1.33.0", "--api-versions", "monitoring.coreos.com/v1")).toBe(once);
    expect(once.length).toBeGreaterThan(1_000);
  });
});

test("renders no kind that the comparison would not see", async () => {
  for (const object of await registered({}, "hall")) expect(isObject(object["metadata"])).toBe(true);
});
