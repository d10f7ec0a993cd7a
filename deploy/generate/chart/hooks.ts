import { EXIT } from "../../../src/cli/exit.ts";
import { DEFAULT_INSTALLATION } from "../../../src/core/installation/installation.ts";
import { MANAGES_CRDS, moduleEnabled } from "../../../src/core/installation/setting-condition.ts";
import { at, type Json, type JsonObject } from "../../../src/core/json.ts";
import { loadModules } from "../../../src/core/module/declaration.ts";
import type { DeclaredRole, Right } from "../../../src/core/module/rights.ts";
import { kindResource } from "../../../src/core/policy/kind.ts";
import { customResources } from "../../../src/core/registration/crd.ts";
import { KEEP, WEBHOOKS } from "../../../src/core/registration/module-rights.ts";
import { OWN_LABELS, OWN_NAMES } from "../../../src/core/registration/names.ts";
import { CONFIGURATION, CONFIGURATION_FILE } from "../../../src/core/registration/pods/restricted-pod.ts";
import { CONTAINER } from "../../../src/core/registration/workload.ts";
import { declarations } from "../../../src/modules/index.ts";
import { asNode, type Node, type NodeMap, When } from "../template/node.ts";
import { NAMESPACE, STARTUP_TAINT } from "../template/standing-for.ts";
import { any, expression } from "./conditions.ts";
import type { ChartObject } from "./objects.ts";
import { rulesOf } from "./roles.ts";

/** A command that Helm runs in the cluster, with its own account and permissions, which are deleted when it is done. */
interface Hook {
  /** Of all its objects. */
  readonly name: string;
  /** Of Helm's: `pre-delete`. */
  readonly events: string;
  readonly kind: "Job" | "Pod";
  readonly args: readonly string[];
  /** In the cluster, and in usher's namespace. */
  readonly rights: readonly Right[];
  readonly namespaced?: readonly Right[];
  readonly condition?: string;
}

/** A refusal by usher would repeat: only its failures (3) are worth another attempt. */
const REFUSED = {
  rules: [
    {
      action: "FailJob",
      onExitCodes: { containerName: CONTAINER, operator: "In", values: [EXIT.found, EXIT.wrong] },
    },
  ],
};

const RBAC = "rbac.authorization.k8s.io";

/** The objects of the chart's hooks, in the order in which Helm creates them. */
export async function hookObjects(chart: readonly ChartObject[]): Promise<ChartObject[]> {
  const deployment = chart.find(({ key }) => key === "Deployment usher")?.node as unknown as JsonObject;
  return (await hooks()).flatMap((hook) => {
    const { name, rights, namespaced = [], condition } = hook;
    const base = { name, own: true } as const;
    const roles: DeclaredRole[] = [{ ...base, kind: "ClusterRole", rights }];
    if (namespaced.length > 0) roles.push({ ...base, kind: "Role", rights: namespaced });
    const objects = [
      { apiVersion: "v1", kind: "ServiceAccount", metadata: metadata(hook, "-10", true) },
      // Before an installation there is none, and before an upgrade it is that of the previous release.
      {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: metadata(hook, "-10", true),
        data: { [CONFIGURATION_FILE]: "" },
      },
      ...roles.flatMap((role) => roleObjects(hook, role)),
      command(hook, deployment),
    ];
    return objects.map((node) => ({
      key: `${node.kind} ${name}`,
      node: asNode(node as unknown as Json) as NodeMap,
      condition,
    }));
  });
}

async function hooks(): Promise<Hook[]> {
  const modules = await loadModules(declarations);
  const right = (
    group: string,
    resources: readonly string[],
    verbs: readonly string[],
    names?: readonly string[],
  ): Right => ({
    group,
    resources,
    verbs,
    ...(names === undefined ? {} : { names }),
    why: "",
    when: [],
  });
  const managed = modules.flatMap((module) => module.managed?.resources ?? []);
  const cleanups = modules.flatMap((module) => module.cleanup?.(DEFAULT_INSTALLATION) ?? []);
  const webhooks = (...verbs: string[]) =>
    right("admissionregistration.k8s.io", WEBHOOKS, verbs, [OWN_NAMES.webhooks]);
  /** On leftovers of modules in the cluster. */
  const leaving = [
    ...managed.map(({ group, resource }) => right(group, [resource], ["get", "list", "delete"])),
    ...cleanups.map(({ group, resource }) => right(group, [resource], ["get", "list", "patch"])),
  ];
  /** To the configuration of the running replicas. */
  const configuration = right("", ["configmaps"], ["get"], [OWN_NAMES.configuration]);
  return [
    {
      name: "usher-crds",
      // An installation finds the CRDs of an earlier one, which Helm leaves as they are.
      events: "pre-install,pre-upgrade",
      kind: "Job",
      args: ["install", "--crds-only", CONFIGURATION.flag],
      rights: [
        right(
          "apiextensions.k8s.io",
          ["customresourcedefinitions"],
          KEEP,
          customResources(modules).map(kindResource).sort(),
        ),
      ],
      namespaced: [configuration, right("apps", ["deployments"], ["get"], [OWN_NAMES.deployment])],
      condition: expression([MANAGES_CRDS]),
    },
    {
      name: "usher-cleanup",
      // While usher may still be called, and again when no replica has the module any longer.
      events: "pre-upgrade,post-upgrade,pre-rollback,post-rollback",
      kind: "Job",
      args: ["cleanup", CONFIGURATION.flag],
      rights: leaving,
      namespaced: [configuration],
      condition: any(
        modules
          .filter(({ managed: objects, cleanup }) => objects !== undefined || cleanup !== undefined)
          .map(({ name }) => expression([{ ...moduleEnabled(name), equals: false }])),
      ),
    },
    {
      name: "usher-removal",
      events: "pre-delete",
      kind: "Job",
      args: ["uninstall", "--webhooks-only", CONFIGURATION.flag],
      rights: [
        right(RBAC, ["clusterroles"], ["get", "delete"], [OWN_NAMES.anchor]),
        webhooks("get", "delete"),
        ...leaving,
      ],
      namespaced: [configuration],
    },
    {
      name: "usher-test",
      events: "test",
      kind: "Pod",
      args: ["verify", CONFIGURATION.flag],
      rights: [
        webhooks("get"),
        ...modules.flatMap(({ name, kinds }) =>
          kinds
            .filter(({ refused }) => refused !== undefined)
            .map(({ group, plural }) => ({
              ...right(group, [plural], ["create"]),
              when: [moduleEnabled(name)],
            })),
        ),
      ],
    },
  ];
}

function metadata({ name, events }: Hook, weight: string, namespaced: boolean): JsonObject {
  return {
    name,
    ...(namespaced ? { namespace: NAMESPACE } : {}),
    annotations: {
      "helm.sh/hook": events,
      "helm.sh/hook-weight": weight,
      "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
    },
  };
}

function roleObjects(hook: Hook, role: DeclaredRole): { kind: string; [field: string]: unknown }[] {
  const { kind, name } = role;
  const namespaced = kind === "Role";
  return [
    {
      apiVersion: `${RBAC}/v1`,
      kind,
      metadata: metadata(hook, "-10", namespaced),
      rules: rulesOf(role),
    },
    {
      apiVersion: `${RBAC}/v1`,
      kind: `${kind}Binding`,
      metadata: metadata(hook, "-5", namespaced),
      roleRef: { apiGroup: RBAC, kind, name },
      subjects: [{ kind: "ServiceAccount", name, namespace: NAMESPACE }],
    },
  ];
}

/** The pods are as the replicas are, but serve nothing. */
function command(hook: Hook, deployment: JsonObject): { kind: string; [field: string]: unknown } {
  const { name, kind, args } = hook;
  const serving = at(deployment, "spec", "template", "spec") as JsonObject;
  const {
    image,
    env,
    resources,
    securityContext,
    name: container,
  } = at(serving, "containers", 0) as JsonObject;
  const given = serving["tolerations"] as Node | undefined;
  const always = (node: Node): Node =>
    node instanceof When && JSON.stringify(node.node).includes(STARTUP_TAINT) ? always(node.node) : node;
  const tolerations = Array.isArray(given) ? given.map(always) : given && always(given);
  const tmp = { name: "tmp", mountPath: "/tmp" };
  const spec = {
    serviceAccountName: name,
    restartPolicy: "Never",
    securityContext: serving["securityContext"],
    ...(serving["nodeSelector"] === undefined ? {} : { nodeSelector: serving["nodeSelector"] }),
    // Also if the module that sets it is off now: every node may still have the startup taint.
    ...(tolerations === undefined ? {} : { tolerations }),
    containers: [
      {
        name: container,
        image,
        args,
        env,
        resources,
        securityContext,
        volumeMounts: [CONFIGURATION.mount, tmp],
      },
    ],
    volumes: [
      { ...CONFIGURATION.volume, configMap: { name } },
      { name: "tmp", emptyDir: {} },
    ],
  };
  const labels = { ...OWN_LABELS, "app.kubernetes.io/component": "hook" };
  if (kind === "Pod")
    return { apiVersion: "v1", kind, metadata: { ...metadata(hook, "0", true), labels }, spec };
  return {
    apiVersion: "batch/v1",
    kind,
    metadata: metadata(hook, "0", true),
    spec: {
      backoffLimit: 3,
      activeDeadlineSeconds: 300,
      podFailurePolicy: REFUSED,
      template: { metadata: { labels }, spec },
    },
  };
}
