import type { Installation } from "../../../core/module/installation.ts";
import type { Cleanup } from "../../../core/module/module.ts";
import { startupChanges } from "../desired/difference.ts";
import { taintOperations } from "../desired/node-patch.ts";
import { settingsOf } from "../settings.ts";

/** A node that registered just before usher was uninstalled would stay unschedulable. Everything else that usher set may stay; the record on the node names it. */
export function startupCleanup(installation: Installation): Cleanup {
  const settings = settingsOf(installation);
  const { startupTaint } = settings;
  return {
    group: "",
    version: "v1",
    resource: "nodes",
    kind: "Node",
    what: `the taint ${startupTaint}`,
    patch: (node) => taintOperations(node, startupChanges(node, settings)),
    byHand: (name) => `kubectl taint nodes ${name} ${startupTaint}-`,
  };
}
