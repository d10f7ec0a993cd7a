import type { Installation } from "../../../core/module/installation.ts";
import type { Cleanup } from "../../../core/module/module.ts";
import { startupChanges } from "../desired/difference.ts";
import { taintOperations } from "../desired/node-patch.ts";
import { settingsOf } from "../settings.ts";

/** A node that began just before usher went would keep work away for ever. All else that usher set may stay, and says whose it is. */
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
