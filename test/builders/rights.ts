import { Gates } from "../../src/core/installation/gates.ts";
import { DEFAULT_INSTALLATION, type Installation } from "../../src/core/installation/installation.ts";
import type { Module } from "../../src/core/module/module.ts";
import { grantedRights } from "../../src/core/module/rights.ts";
import { judgingRights } from "../../src/core/registration/module-rights.ts";

/** The verbs that a module's `access` gets in an installation, by resource. */
export function accessVerbs(
  module: Module,
  settings: Installation["settings"] = {},
  gates = new Gates([]),
): Record<string, string> {
  const only: Module = { ...module, reads: [], kinds: [], stateKinds: [] };
  const installation = { ...DEFAULT_INSTALLATION, settings };
  const granted = grantedRights(judgingRights(only), { installation, gates }).flatMap(
    ({ resources, verbs }) => resources.map((resource) => ({ resource, verbs })),
  );
  return Object.fromEntries(
    [...Map.groupBy(granted, ({ resource }) => resource)].map(([resource, all]) => [
      resource,
      all.flatMap(({ verbs }) => verbs).join(),
    ]),
  );
}
