import { z } from "zod";
import { type Json, type JsonObject, stringAt } from "../../../core/json.ts";
import { nameOf, namespaceOf } from "../../../core/kubernetes/object.ts";
import type { CommandCode, InputText, ReportItem } from "../../../core/module/command.ts";
import { readPages } from "../../../core/module/command-needs.ts";
import type { Code } from "../../../core/module/module.ts";
import { byText } from "../../../core/order.ts";
import type { Group } from "../groups/group.ts";
import { podMatches } from "../groups/principals.ts";
import { groupsAt, nodesIn } from "./list-command.ts";

const PAGE = 500;

/** A pod on a protected node, as JSON has it. */
interface ListedPod {
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
  readonly group: string;
  readonly serviceAccount: string;
  readonly authorized: boolean;
  /** The entry that authorises it. */
  readonly by: string | null;
  readonly reviewed: boolean;
}

interface Flags {
  readonly reviewed?: InputText;
}

/** `namespace/serviceAccount` lines; empty lines and those with `#` are comments. */
const LINE = /^[a-z0-9][-a-z0-9]*\/[a-z0-9][-a-z0-9.]*$/;

/** The pods on protected nodes, whether Enable would admit them, and whether they were reviewed. */
export const inventoryCode: CommandCode<object, Flags> = {
  shape: z.strictObject({
    pods: z.array(
      z.strictObject({
        namespace: z.string(),
        name: z.string(),
        node: z.string(),
        group: z.string(),
        serviceAccount: z.string(),
        authorized: z.boolean(),
        by: z.string().nullable().describe("The entry that authorises it."),
        reviewed: z.boolean(),
      }),
    ),
  }),
  check: ({ flags: { reviewed } }) => {
    if (reviewed === undefined) return undefined;
    const wrong = linesOf(reviewed).find(({ text }) => !LINE.test(text));
    return wrong === undefined
      ? undefined
      : `${reviewed.name}:${wrong.number}: must be namespace/serviceAccount, got ${JSON.stringify(wrong.text)}`;
  },
  *run({ assembly, flags: { reviewed }, now, changedOnly }) {
    const groups = groupsAt(assembly, now);
    const groupsOfNode = new Map<string, Group[]>();
    for (const group of groups)
      for (const node of nodesIn(assembly, group))
        groupsOfNode.set(node, [...(groupsOfNode.get(node) ?? []), group]);
    const known = new Set(reviewed === undefined ? [] : linesOf(reviewed).map(({ text }) => text));
    const pods: ListedPod[] = [];
    const failure = yield* readPages({
      what: "pods",
      page: (token) => ({
        list: { resource: "pods", ...(token === undefined ? {} : { continue: token }) },
        limit: PAGE,
        share: 1,
      }),
      // biome-ignore lint/correctness/useYield: a pod needs nothing.
      *take(objects) {
        for (const pod of objects)
          for (const group of groupsOfNode.get(nodeOf(pod)) ?? []) pods.push(listed(pod, group, known));
      },
      progress: { doing: "reading", things: "kinds", done: 0, total: 1 },
    });
    pods.sort(compare);
    const isOpen = (pod: ListedPod) => !pod.authorized || (reviewed !== undefined && !pod.reviewed);
    const shown = changedOnly ? pods.filter(isOpen) : pods;
    const refused = pods.filter(({ authorized }) => !authorized).length;
    const unreviewed = reviewed === undefined ? [] : pods.filter((pod) => !pod.reviewed);
    return {
      data: { pods: shown } as unknown as Json,
      table: {
        columns: ["POD", "NODE", "GROUP", "SERVICE ACCOUNT", "AUTHORISED BY", "REVIEWED"],
        rows: shown.map((pod) => [
          `${pod.namespace}/${pod.name}`,
          pod.node,
          pod.group,
          pod.serviceAccount,
          pod.by ?? "-",
          reviewed === undefined ? "-" : pod.reviewed ? "yes" : "no",
        ]),
      },
      summary: summaryOf(pods.length, refused, unreviewed.length),
      items: shown.map((pod) => itemOf(pod, reviewed !== undefined)),
      codes: [NOT_REVIEWED],
      errors: failure === undefined ? [] : [failure],
      exit: failure !== undefined ? "failed" : unreviewed.length > 0 ? "found" : "fine",
    };
  },
};

function linesOf({ text }: InputText): { readonly text: string; readonly number: number }[] {
  return text
    .split("\n")
    .map((line, i) => ({ text: line.trim(), number: i + 1 }))
    .filter((line) => line.text !== "" && !line.text.startsWith("#"));
}

function nodeOf(pod: JsonObject): string {
  return stringAt(pod, "spec", "nodeName") ?? "";
}

function listed(pod: JsonObject, group: Group, known: ReadonlySet<string>): ListedPod {
  const namespace = namespaceOf(pod);
  const serviceAccount = stringAt(pod, "spec", "serviceAccountName") || "default";
  const by = podMatches(namespace, serviceAccount, group);
  return {
    namespace,
    name: nameOf(pod),
    node: nodeOf(pod),
    group: group.name,
    serviceAccount,
    authorized: by !== undefined,
    by: by?.entry ?? null,
    reviewed: known.has(`${namespace}/${serviceAccount}`),
  };
}

/** A pod that Enable would refuse is a warning: the mode decides whether that is wrong. */
function itemOf(
  { namespace, name, node, group, serviceAccount, authorized, reviewed }: ListedPod,
  isListed: boolean,
): ReportItem {
  const account = `service account ${namespace}/${serviceAccount}`;
  return {
    object: { kind: "Pod", namespace, name },
    verdict: authorized ? "authorised" : "not authorised",
    findings: [
      ...(authorized
        ? []
        : [
            {
              level: "warning" as const,
              code: "USHER-G01",
              message: `runs on node ${node} of group ${group}, and no entry authorises ${account}`,
              by: group,
            },
          ]),
      ...(isListed && !reviewed
        ? [
            {
              level: "error" as const,
              code: NOT_REVIEWED.code,
              message: `${account} is not among the reviewed`,
              by: group,
            },
          ]
        : []),
    ],
  };
}

const NOT_REVIEWED: Code = {
  code: "not-reviewed",
  title: "A pod on a protected node was not reviewed",
  meaning: "The file of --reviewed does not name the service account of this pod.",
  remedy: "Look at the pod. If it belongs there, add its namespace/serviceAccount to the file.",
};

/** `4 pods on protected nodes: 1 not authorised, 2 not reviewed` */
function summaryOf(pods: number, refused: number, unreviewed: number): string {
  if (pods === 0) return "no pods on protected nodes";
  const parts = [`${refused} not authorised`, ...(unreviewed > 0 ? [`${unreviewed} not reviewed`] : [])];
  return `${pods} ${pods === 1 ? "pod" : "pods"} on protected nodes: ${parts.join(", ")}`;
}

const compare = byText((one: ListedPod) => [one.namespace, one.name, one.group].join(" "));
