// Every setting on which a module's hooks, or their verdicts, depend; and all modules in such a mode.

import { Gates } from "../../src/core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../src/core/installation/installation.ts";
import type { JsonObject } from "../../src/core/json.ts";
import { parseVersion } from "../../src/core/kubernetes/versions.ts";
import { Assembly } from "../../src/core/module/assembly.ts";
import { policyCheck } from "../../src/core/module/policy-check.ts";
import { modules } from "../../src/modules/all.ts";
import { GROUP, NODES } from "./guard.ts";
import { came, clusterPolicy, namespace } from "./policy.ts";
import { limitsCame } from "./project-limit.ts";

export interface Mode {
  readonly settings?: Readonly<Record<string, JsonObject>>;
  readonly placement?: JsonObject;
  readonly limits?: JsonObject;
  readonly gates?: boolean;
}

const guard = (mode: string): Mode => ({
  settings: {
    "node-guard": {
      policy: {
        groups: [{ ...GROUP, mode, guardAccessOnProtectedNodes: true, protectNodeLabels: true }],
      },
    },
  },
});
const place = (spec: JsonObject): Mode => ({
  placement: { namespaceSelector: {}, podSelector: {}, nodeSelector: { pool: "etcd" }, ...spec },
});
const os = (settings: JsonObject): Mode => ({ settings: { "pod-os": settings } });
const LIMITS = { limits: [{ maxProjects: 2 }], namespaces: {} };

export const MODES: Readonly<Record<string, Mode>> = {
  "nothing configured": {},
  "gates off": { gates: false },
  "placement injects": place({}),
  "onConflict: Refuse": place({ onConflict: "Refuse" }),
  "failurePolicy: Fail": place({ failurePolicy: "Fail" }),
  "enforcement: Warn": place({ enforcement: "Warn" }),
  "enforcement: Refuse": place({ enforcement: "Refuse" }),
  "enforcement: Refuse, failurePolicy: Fail": place({ enforcement: "Refuse", failurePolicy: "Fail" }),
  "mode: Inform": guard("Inform"),
  "mode: Enable": guard("Enable"),
  "os.contradictions: Deny": os({ os: { contradictions: "Deny" } }),
  "os.nodeMismatch: Deny": os({ os: { nodeMismatch: "Deny", write: true } }),
  "podSecurity.mode: Replace": os({ podSecurity: { mode: "Replace" } }),
  "podSecurity.templates: Deny": os({ podSecurity: { templates: "Deny" } }),
  "a ProjectRequestLimit": { limits: LIMITS },
  "a ProjectRequestLimit, failurePolicy: Ignore": { limits: { ...LIMITS, failurePolicy: "Ignore" } },
};

const ALL = [...modules, policyCheck(modules)];

export function assemblyIn(
  { settings = {}, placement, limits, gates = true }: Mode,
  server = "v1.34.0",
): Assembly {
  const every = ALL.flatMap((module) => module.gates ?? []).map((gate) => ({ ...gate, default: gates }));
  const assembly = new Assembly(ALL, { ...DEFAULT_INSTALLATION, settings }, new Gates(every));
  const version = parseVersion(server);
  if (version !== undefined) assembly.observeServerVersion({ effective: version, binary: version });
  assembly.apply([
    came(namespace("shop")),
    // Fail-closed hooks of node-guard need existing nodes.
    ...NODES.map(came),
    ...(placement === undefined ? [] : [came(clusterPolicy("pool", placement))]),
    ...(limits === undefined ? [] : [limitsCame(limits)]),
  ]);
  return assembly;
}
