import type { Draft } from "../../src/core/decision/draft.ts";
import type { Finding, ModuleFinding } from "../../src/core/decision/finding.ts";
import { type Json, type JsonObject, stringAt } from "../../src/core/json.ts";
import type { Path } from "../../src/core/path.ts";
import type { PolicyRef } from "../../src/core/policy/policy-ref.ts";
import { PROVENANCE } from "../../src/core/provenance/annotation.ts";

export const ETCD: PolicyRef = { kind: "ClusterPodSchedulingPolicy", name: "etcd", uid: "u1", generation: 3 };
export const SHOP: PolicyRef = { kind: "PodSchedulingPolicy", namespace: "shop", name: "web" };

export const finding = (policy: PolicyRef, change: Partial<Finding> = {}): Finding => ({
  policy,
  rule: "nodeSelector",
  outcome: "applied",
  message: "m",
  ...change,
});

export const ZONE: Path = ["spec", "nodeSelector", "zone"];
export const DISK: Path = ["spec", "nodeSelector", "disk"];
export const TOLERATIONS: Path = ["spec", "tolerations"];

/** An object whose provenance annotation is this string or value, with a nodeSelector and tolerations. */
export function object(note: Json | undefined, spec: JsonObject = {}, metadata: JsonObject = {}): JsonObject {
  const text = note === undefined || typeof note === "string" ? note : JSON.stringify(note);
  return {
    metadata: {
      name: "web",
      ...(text === undefined ? {} : { annotations: { [PROVENANCE]: text } }),
      ...metadata,
    },
    spec,
  };
}

export const note = (draft: Draft): Json | undefined => {
  const text = stringAt(draft.object, "metadata", "annotations", PROVENANCE);
  return text === undefined ? undefined : JSON.parse(text);
};

export const same = (module: string, policy: PolicyRef, path: Path): ModuleFinding => ({
  module,
  ...finding(policy, { outcome: "same", path }),
});

export const CLAIM_ZONE = {
  placement: [{ policy: "ClusterPodSchedulingPolicy/etcd", set: ["/spec/nodeSelector/zone"] }],
};
