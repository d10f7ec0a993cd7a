import { at, isObject, type Json, listAt, stringAt } from "../../../../src/core/json.ts";
import { nameOf } from "../../../../src/core/kubernetes/object.ts";
import type { CommandCode, PlannedChange } from "../../../../src/core/module/command.ts";
import { readPages } from "../../../../src/core/module/command-needs.ts";
import type { BackfillArgs, GrantFlags, ImportArgs, ReportFlags } from "./declaration.ts";

const OWNER = "tenancy.usher.dev/owner";

/** Converts a configuration to a custom resource; reads no cluster. */
export const importCode: CommandCode<ImportArgs> = {
  run: ({ args: { file } }) => {
    const [configuration, ...others] = file.documents;
    if (!isObject(configuration) || others.length > 0) return { wrong: `${file.name}: must be one document` };
    const users = listAt(configuration, "users");
    const resource = { apiVersion: "tenancy.usher.dev/v1", kind: "Tenancy", spec: { users } };
    return { data: resource, exit: "fine" };
  },
};

/** Annotates namespaces from a CSV file. */
export const backfillCode: CommandCode<BackfillArgs> = {
  needsView: () => false,
  check: ({ args: { file } }) => (file.text.trim() === "" ? `${file.name}: no lines` : undefined),
  run: ({ args: { file } }) => {
    const errors: string[] = [];
    const changes: PlannedChange[] = [];
    for (const [i, line] of file.text.trim().split("\n").entries()) {
      const [namespace = "", user = ""] = line.split(",");
      if (user === "") errors.push(`${file.name}:${i + 1}: must be namespace,user`);
      else changes.push(stamp(namespace, user));
    }
    return { changes, errors, parallel: 2 };
  },
};

function stamp(name: string, user: string): PlannedChange {
  const of = { resource: "namespaces", name };
  return {
    kind: "Namespace",
    of,
    plan: (stored) => {
      if (stored === undefined) return { failed: "not found" };
      if (stringAt(stored, "metadata", "annotations", OWNER) === user) return "unchanged";
      const annotations = at(stored, "metadata", "annotations");
      const merged = { ...(isObject(annotations) ? annotations : {}), [OWNER]: user };
      return {
        patch: [{ op: "add", path: "/metadata/annotations", value: merged }],
        of,
        resourceVersion: stringAt(stored, "metadata", "resourceVersion") ?? "",
      };
    },
  };
}

/** Namespaces with their owners and the number of their pods, which are listed page by page. */
export const reportCode: CommandCode<object, ReportFlags> = {
  *run({ flags, assembly }) {
    const pods = new Map<string, number>();
    let pages = 0;
    const failure = yield* readPages({
      what: "pods",
      page: (token) => ({
        list: { resource: "pods", ...(token === undefined ? {} : { continue: token }) },
        limit: 2,
        share: 1,
      }),
      // biome-ignore lint/correctness/useYield: needs no fact for a pod.
      *take(objects) {
        pages += 1;
        for (const pod of objects) {
          const namespace = stringAt(pod, "metadata", "namespace") ?? "";
          pods.set(namespace, (pods.get(namespace) ?? 0) + 1);
        }
      },
      progress: { doing: "listing", things: "lists", done: 0, total: 1 },
    });
    const all = [...assembly.view.list("namespaces")].map((namespace) => ({
      name: nameOf(namespace),
      owner: stringAt(namespace, "metadata", "annotations", OWNER) ?? "",
      pods: pods.get(nameOf(namespace)) ?? 0,
    }));
    const shown = all
      .filter((one) => one.pods >= flags.minPods)
      .filter((one) => flags.owner.length === 0 || flags.owner.includes(one.owner))
      .filter((one) => flags.unowned !== true || one.owner === "")
      .sort((a, b) => (flags.sort === "pods" ? b.pods - a.pods : a.name < b.name ? -1 : 1));
    const unowned = shown.filter(({ owner }) => owner === "").length;
    return {
      data: { namespaces: shown, pages } as unknown as Json,
      table: {
        columns: ["NAMESPACE", "OWNER", "PODS"],
        rows: shown.map(({ name, owner, pods: count }) => [name, owner === "" ? "-" : owner, String(count)]),
      },
      summary: `${shown.length} namespaces, ${unowned} without an owner`,
      notes: unowned > 0 ? ["Run backfill to set owners."] : [],
      errors: failure === undefined ? [] : [failure],
      exit: failure !== undefined ? "failed" : unowned > 0 ? "found" : "fine",
    };
  },
};

/** Creates an object with server-side apply. */
export const grantCode: CommandCode<object, GrantFlags> = {
  needsView: () => false,
  check: ({ flags }) => (flags.to === undefined ? "--to is required" : undefined),
  run: ({ flags, namespace = "default" }) => ({
    changes: [
      {
        kind: "ConfigMap",
        of: { resource: "configmaps", namespace, name: "grant" },
        plan: (stored) => ({
          apply: {
            apiVersion: "v1",
            kind: "ConfigMap",
            metadata: { name: "grant", namespace },
            data: { to: flags.to ?? "" },
          },
          resourceVersion: stringAt(stored, "metadata", "resourceVersion"),
        }),
      },
    ],
  }),
};
