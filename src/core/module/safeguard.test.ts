import { describe, expect, test } from "vitest";
import { DEFAULT_INSTALLATION } from "../installation/installation.ts";
import type { Hook, NamespaceScope, Rule } from "./hook.ts";
import { safeguard } from "./safeguard.ts";

const PROTECTED = ["kube-node-lease", "kube-public", "kube-system", "usher-system"];
const SCOPE: NamespaceScope = { except: PROTECTED };

function rule(group: string, resource: string, scope?: "Cluster" | "Namespaced"): Rule {
  return {
    groups: [group],
    versions: ["v1"],
    resources: [resource],
    operations: ["CREATE"],
    ...(scope === undefined ? {} : { scope }),
  };
}

function hook(rules: readonly Rule[], more: Partial<Hook> = {}): Hook {
  return {
    name: "guard",
    module: "guard",
    phase: "validate",
    rules,
    failure: "closed",
    tooLarge: "deny",
    timeoutSeconds: 5,
    namespaces: SCOPE,
    sideEffects: "None",
    ...more,
  };
}

/** The resulting rules: fail-closed and fail-open ones as `group/resource scope`. */
function fate(rules: readonly Rule[]): { closed: string[]; open: string[] } {
  const reported = (failure: string) =>
    safeguard([hook(rules)], DEFAULT_INSTALLATION)
      .hooks.filter((one) => one.failure === failure)
      .flatMap((one) => one.rules)
      .map(({ groups, resources, scope }) => `${groups}:${resources} ${scope ?? "*"}`);
  return { closed: reported("closed"), open: reported("open") };
}

describe("rules of a fail-closed hook", () => {
  const cases: [string, Rule[], string[], string[]][] = [
    ["pods stay", [rule("", "pods")], [":pods *"], []],
    ["bindings stay", [rule("", "pods/binding")], [":pods/binding *"], []],
    [
      "namespaces stay: their selector matches their own name",
      [rule("", "namespaces")],
      [":namespaces *"],
      [],
    ],
    ["nodes go", [rule("", "nodes")], [], [":nodes *"]],
    ["nodes of another group are others", [rule("metrics.k8s.io", "nodes")], ["metrics.k8s.io:nodes *"], []],
    ["subresources of nodes are removed", [rule("", "nodes/status")], [], [":nodes/status *"]],
    ["all subresources of nodes are removed", [rule("", "nodes/*")], [], [":nodes/* *"]],
    ["leases go", [rule("coordination.k8s.io", "leases")], [], ["coordination.k8s.io:leases *"]],
    [
      "leases in namespaces are removed",
      [rule("coordination.k8s.io", "leases", "Namespaced")],
      [],
      ["coordination.k8s.io:leases Namespaced"],
    ],
    [
      "a scope that never meets them is harmless",
      [rule("coordination.k8s.io", "leases", "Cluster")],
      ["coordination.k8s.io:leases Cluster"],
      [],
    ],
    [
      "certificate requests are removed, with approval",
      [rule("certificates.k8s.io", "certificatesigningrequests/approval")],
      [],
      ["certificates.k8s.io:certificatesigningrequests/approval *"],
    ],
    [
      "reviews go",
      [rule("authorization.k8s.io", "subjectaccessreviews")],
      [],
      ["authorization.k8s.io:subjectaccessreviews *"],
    ],
    [
      "CRDs go",
      [rule("apiextensions.k8s.io", "customresourcedefinitions")],
      [],
      ["apiextensions.k8s.io:customresourcedefinitions *"],
    ],
    [
      "webhook configurations are removed",
      [rule("admissionregistration.k8s.io", "*")],
      ["admissionregistration.k8s.io:* Namespaced"],
      ["admissionregistration.k8s.io:* Cluster"],
    ],
    ["all of the core group: namespaced resources stay", [rule("", "*")], [":* Namespaced"], [":* Cluster"]],
    ["all of it in namespaces stays", [rule("", "*/*", "Namespaced")], [":*/* Namespaced"], []],
    ["all of it cluster-scoped is removed", [rule("", "*", "Cluster")], [], [":* Cluster"]],
    ["any status of the core group", [rule("", "*/status")], [":*/status Namespaced"], [":*/status Cluster"]],
    ["all of all is removed: leases are in namespaces", [rule("*", "*/*")], [], ["*:*/* *"]],
    ["all of all in namespaces is removed too", [rule("*", "*", "Namespaced")], [], ["*:* Namespaced"]],
    ["nodes of any group", [rule("*", "nodes")], ["*:nodes Namespaced"], ["*:nodes Cluster"]],
    ["pods of any group stay", [rule("*", "pods")], ["*:pods *"], []],
    ["a group without protected resources stays whole", [rule("apps", "*/*")], ["apps:*/* *"], []],
    [
      "one rule with both is parted",
      [{ ...rule("", "pods"), groups: ["apps", ""], resources: ["pods", "nodes", "deployments"] }],
      [":deployments,pods *", "apps:deployments,nodes,pods *"],
      [":nodes *"],
    ],
    [
      "a wildcard beside a name counts as the wildcard",
      [{ ...rule("", "nodes"), groups: ["", "*"] }],
      ["*:nodes Namespaced"],
      ["*:nodes Cluster"],
    ],
  ];
  test.each(cases)("%s", (_name, rules, closed, open) => {
    expect(fate(rules)).toEqual({ closed, open });
  });
});

describe("namespaces of a fail-closed hook", () => {
  const cases: [string, NamespaceScope | undefined, NamespaceScope | undefined, string[]][] = [
    [
      "none said",
      undefined,
      SCOPE,
      [`guard: is not asked in ${PROTECTED.join(", ")}, where no closed hook may be`],
    ],
    ["already left out", SCOPE, SCOPE, []],
    [
      "others left out",
      { except: ["shop", "kube-system"] },
      { except: [...PROTECTED, "shop"].sort() },
      ["guard: is not asked in kube-node-lease, kube-public, usher-system, where no closed hook may be"],
    ],
    ["some named", { only: ["shop", "bank"] }, { only: ["bank", "shop"] }, []],
    [
      "some named, one protected",
      { only: ["shop", "kube-system"] },
      { only: ["shop"] },
      ["guard: is not asked in kube-system, where no closed hook may be"],
    ],
    [
      "only protected ones named",
      { only: ["kube-system"] },
      undefined,
      [
        "guard: is not asked in kube-system, where no closed hook may be",
        "guard: is left out as a closed hook, for no namespace remains to it",
      ],
    ],
  ];
  test.each(cases)("%s", (_name, given, left, notes) => {
    const { namespaces: _none, ...bare } = hook([rule("", "pods")]);
    const found = safeguard(
      [given === undefined ? bare : { ...bare, namespaces: given }],
      DEFAULT_INSTALLATION,
    );
    expect(found.hooks.map(({ namespaces }) => namespaces)).toEqual(left === undefined ? [] : [left]);
    expect(found.notes).toEqual(notes);
  });
});

test("Kubernetes' own namespaces are always excluded, whichever others an installation names", () => {
  const installation = { ...DEFAULT_INSTALLATION, controlPlaneNamespaces: ["calico-system"] };
  const { namespaces: _none, ...bare } = hook([rule("", "pods")]);
  const { hooks } = safeguard([bare], installation);
  expect(hooks.map(({ namespaces }) => namespaces)).toEqual([
    { except: ["calico-system", "kube-node-lease", "kube-public", "kube-system", "usher-system"] },
  ]);
});

test("the fail-open part is a separate hook beside the fail-closed one, and noted", () => {
  const given = hook([rule("", "pods"), rule("", "nodes")]);
  expect(safeguard([given], DEFAULT_INSTALLATION)).toEqual({
    hooks: [
      { ...given, rules: [rule("", "pods")] },
      { ...given, name: "guard-open", failure: "open", tooLarge: "allow", rules: [rule("", "nodes")] },
    ],
    notes: [
      "guard: its rules reach resources that no closed hook may stop (nodes); that part is asked as guard-open, which is open",
    ],
  });
});

test("an opened namespace is covered by a fail-open hook, never by the fail-closed one", () => {
  const installation = { ...DEFAULT_INSTALLATION, opened: ["kube-system", "shop"] };
  const given = hook([rule("", "pods"), rule("", "persistentvolumes", "Cluster")], {
    namespaces: { except: ["usher-system"] },
  });
  const { hooks, notes } = safeguard([given], installation);
  expect(hooks).toEqual([
    { ...given, namespaces: SCOPE, rules: [rule("", "persistentvolumes", "Cluster"), rule("", "pods")] },
    {
      ...given,
      name: "guard-opened",
      failure: "open",
      namespaces: { only: ["kube-system"] },
      rules: [rule("", "pods", "Namespaced")],
    },
  ]);
  expect(notes).toEqual([
    "guard: is not asked in kube-node-lease, kube-public, where no closed hook may be",
    "guard: in kube-system it is asked as guard-opened, which is open",
  ]);
});

test("a shadow hook covers the control plane's namespaces, and never usher's own", () => {
  const given = hook([rule("", "pods"), rule("", "namespaces"), rule("", "persistentvolumes", "Cluster")], {
    openShadow: true,
    namespaces: { except: [] },
  });
  const installation = { ...DEFAULT_INSTALLATION, controlPlaneNamespaces: ["openshift-etcd"] };
  const { hooks, notes } = safeguard([given], installation);
  const only = ["kube-node-lease", "kube-public", "kube-system", "openshift-etcd"];
  expect(hooks).toMatchObject([
    { name: "guard", failure: "closed", namespaces: { except: [...only, "usher-system"] } },
    { name: "guard-opened", askedAs: "guard", failure: "open", namespaces: { only } },
  ]);
  expect(hooks[1]?.rules).toEqual([
    rule("", "namespaces", "Cluster"),
    rule("", "namespaces", "Namespaced"),
    rule("", "pods", "Namespaced"),
  ]);
  expect(notes).toEqual([]);
});

test("of a hook for the control plane alone only the shadow hook remains", () => {
  const given = hook([rule("", "pods")], { openShadow: true, namespaces: { only: ["kube-system"] } });
  const { hooks, notes } = safeguard([given], DEFAULT_INSTALLATION);
  expect(hooks).toMatchObject([{ name: "guard-opened", failure: "open" }]);
  expect(notes).toEqual([]);
});

test("a fail-open hook passes unchanged", () => {
  const given = hook([rule("*", "*/*")], { failure: "open" });
  expect(safeguard([given], DEFAULT_INSTALLATION)).toEqual({ hooks: [given], notes: [] });
});

test("a name in use is not used again", () => {
  const given = [hook([rule("", "nodes")]), hook([rule("", "pods")], { name: "guard-open" })];
  const names = safeguard(given, DEFAULT_INSTALLATION).hooks.map(({ name }) => name);
  expect(names).toEqual(["guard-open-open", "guard-open"]);
});
