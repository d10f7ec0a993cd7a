import { defineModule, type Module } from "../../../../src/core/module/module.ts";

export const tenancy: Module = defineModule({
  name: "tenancy",
  summary: "counts pods of tenants",
  kinds: [],
  reads: [
    {
      resource: "namespaces",
      group: "",
      version: "v1",
      kind: "Namespace",
      scope: "Cluster",
      keep: [["metadata", "annotations"]],
    },
  ],
  hooks: () => [],
  assemble: () => ({}),
});
