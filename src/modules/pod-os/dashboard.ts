import { resourceName } from "../../core/decision/request.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import { controllerOf, groupVersionOf, nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import { isFinished } from "../../core/kubernetes/pod-state.ts";
import { describeSelector } from "../../core/kubernetes/selectors/label-selector.ts";
import type { Assembly } from "../../core/module/assembly.ts";
import type {
  DashboardParts,
  DashboardTable,
  Lens,
  LensAnswer,
  TableRow,
} from "../../core/module/dashboard.ts";
import { fieldPath, steps } from "../../core/path.ts";
import { type EvaluatedObject, evaluateObject } from "./scan/evaluated-workload.ts";
import { policyOf } from "./security/admission/namespace-policy.ts";
import type { Violation } from "./security/check.ts";
import { detailOf, evaluatePodSecurity } from "./security/evaluate.ts";
import type { Exception } from "./security/exceptions/exceptions.ts";
import { compareLevels, type Level } from "./security/policy.ts";
import { settingsOf } from "./settings.ts";

const JUDGED = ["baseline", "restricted"] as const;

function configurationOf({ installation }: Assembly) {
  return settingsOf(installation).podSecurity.configuration;
}

function newestOf({ view }: Assembly) {
  const minor = view.serverVersion?.effective.minor;
  return minor === undefined ? {} : { newest: minor };
}

const byLevel: Lens = {
  name: "pod-security",
  title: "Pod Security level",
  summary:
    "The strictest Pod Security level that the pod meets, and whether its namespace enforces a stricter one.",
  prepare: (assembly) => ({
    of: (pod) => {
      const metadata = isObject(pod["metadata"]) ? pod["metadata"] : {};
      const spec = isObject(pod["spec"]) ? pod["spec"] : {};
      const found = JUDGED.map((level) => ({
        level,
        ...evaluatePodSecurity({ level, version: "latest" }, metadata, spec, newestOf(assembly)),
      }));
      const meets: Level = found.findLast(({ allowed }) => allowed)?.level ?? "privileged";
      const next = found.find(({ allowed }) => !allowed);
      const namespace = assembly.view.get("namespaces", "", namespaceOf(pod));
      const enforced =
        namespace === undefined ? undefined : policyOf(namespace, configurationOf(assembly)).enforce;
      const missing = next === undefined ? "" : ` Not ${next.level}: ${detailOf(next.violations)}.`;
      const judged = enforced && evaluatePodSecurity(enforced, metadata, spec, newestOf(assembly));
      if (enforced !== undefined && judged?.allowed === false)
        return answer(
          "violates",
          "below its namespace's level",
          "bad",
          `Namespace ${namespaceOf(pod)} enforces ${enforced.level}: ${judged.detail}. A new pod like it would be refused.`,
        );
      return answer(meets, meets, TONES[meets], `It meets ${meets}.${missing}`);
    },
  }),
};

const TONES = { restricted: "good", baseline: "plain", privileged: "warning" } as const;

function answer(key: string, title: string, tone: LensAnswer["tone"], why: string): LensAnswer {
  return { key, title, tone, why, policies: [] };
}

/** A workload with what it violates at each level. */
type Judged = Readonly<Record<(typeof JUDGED)[number], EvaluatedObject | undefined>>;

/** Workloads that no known workload controls, by namespace, each with its violations. */
function judgedByNamespace(
  assembly: Assembly,
  remember: Parameters<DashboardTable["rows"]>[2],
): Map<string, { readonly object: JsonObject; readonly kind: string; readonly judged: Judged }[]> {
  const { view, installation } = assembly;
  const { workloads: table } = installation;
  const found = new Map<string, { object: JsonObject; kind: string; judged: Judged }[]>();
  for (const workload of table.all)
    for (const object of view.list(resourceName(workload))) {
      const controller = controllerOf(object);
      const owner = controller && table.byKind(groupVersionOf(controller.apiVersion).group, controller.kind);
      if (owner !== undefined || isFinished(object)) continue;
      const judged = remember(object, (): Judged => {
        const of = (level: (typeof JUDGED)[number]) =>
          evaluateObject(object, workload, {
            policies: {
              policy: { level, version: "latest" },
              against: undefined,
              newest: undefined,
              ...newestOf(assembly),
            },
            view,
            table,
          });
        return { baseline: of("baseline"), restricted: of("restricted") };
      });
      const namespace = namespaceOf(object);
      found.set(namespace, [...(found.get(namespace) ?? []), { object, kind: workload.kind, judged }]);
    }
  return found;
}

const table: DashboardTable = {
  name: "pod-security",
  title: "Pod Security",
  summary: "Namespaces by the level that they enforce, and the workloads that a stricter level would refuse.",
  columns: [
    { title: "Namespace", align: "start" },
    { title: "Enforced", align: "start", groups: true },
    { title: "Workloads", align: "end" },
    { title: "Break at baseline", align: "end" },
    { title: "Break at restricted", align: "end" },
    { title: "Could enforce", align: "start", groups: true },
  ],
  empty: "There are no namespaces here. Give a source with namespaces, or a kubeconfig that may list them.",
  rows: (assembly, _now, remember) => {
    const byNamespace = judgedByNamespace(assembly, remember);
    const rows = [...assembly.view.list("namespaces")]
      .map((namespace) => rowOf(namespace, byNamespace.get(nameOf(namespace)) ?? [], assembly))
      .sort((a, b) => (a.row.key < b.row.key ? -1 : 1));
    const loose = rows.filter(({ could, enforced }) => compareLevels(could, enforced) > 0).length;
    const broken = rows.filter(({ row }) => row.tone === "bad").length;
    return {
      figures: [
        { title: "namespaces", value: String(rows.length), tone: "none" },
        {
          title: "could enforce a stricter level today",
          value: String(loose),
          tone: loose > 0 ? "warning" : "good",
        },
        {
          title: "with workloads below their own level",
          value: String(broken),
          tone: broken > 0 ? "bad" : "good",
        },
      ],
      rows: rows.map(({ row }) => row),
    };
  },
};

function rowOf(
  namespace: JsonObject,
  workloads: readonly { readonly object: JsonObject; readonly kind: string; readonly judged: Judged }[],
  assembly: Assembly,
): { readonly row: TableRow; readonly could: Level; readonly enforced: Level } {
  const { enforce } = policyOf(namespace, configurationOf(assembly));
  const breaks = (level: (typeof JUDGED)[number]) =>
    workloads.filter(({ judged }) => (judged[level]?.violations.length ?? 0) > 0);
  const [baseline, restricted] = JUDGED.map((level) => breaks(level).length) as [number, number];
  const could: Level = restricted === 0 ? "restricted" : baseline === 0 ? "baseline" : "privileged";
  const below = compareLevels(enforce.level, could) > 0;
  const details = breaks("restricted").map(({ object, kind, judged }) => {
    const atBaseline = judged.baseline?.violations ?? [];
    const violations = judged.restricted?.violations ?? [];
    const text = (one: Violation) => `${one.reason}${one.detail === "" ? "" : `: ${one.detail}`}`;
    return {
      title: `${kind} ${nameOf(object)}`,
      tone: atBaseline.length > 0 ? ("bad" as const) : ("warning" as const),
      object: { kind, namespace: namespaceOf(object), name: nameOf(object) },
      lines: [
        ...atBaseline.map((one) => `baseline: ${text(one)}`),
        ...violations
          .filter(({ check }) => !atBaseline.some((one) => one.check === check))
          .map((one) => `restricted: ${text(one)}`),
      ],
      fixes: [...new Set([...atBaseline, ...violations].flatMap(fixesOf))],
    };
  });
  const name = nameOf(namespace);
  return {
    could,
    enforced: enforce.level,
    row: {
      key: name,
      tone: below ? "bad" : compareLevels(could, enforce.level) > 0 ? "warning" : "good",
      cells: [
        { text: name },
        { text: enforce.level, tone: TONES[enforce.level] },
        { text: String(workloads.length), value: workloads.length },
        { text: String(baseline), value: baseline, tone: baseline > 0 ? "bad" : "good" },
        { text: String(restricted), value: restricted, tone: restricted > 0 ? "warning" : "good" },
        { text: could, tone: TONES[could] },
      ],
      details,
    },
  };
}

/** ` spec.securityContext.runAsNonRoot: true`, relative to the pod or its template. */
function fixesOf({ fix }: Violation): string[] {
  return (fix ?? []).map((operation) => {
    const field = fieldPath(
      steps(operation.path).map((one) => (/^\d+$/.test(String(one)) ? Number(one) : one)),
    );
    return operation.op === "remove" ? ` remove ${field}` : ` ${field}: ${JSON.stringify(operation.value)}`;
  });
}

export const dashboard: DashboardParts = {
  lenses: [byLevel],
  tables: [table],
  summarize:
    (_assembly, now) =>
    ({ policy }) => {
      const known = policy as Exception | undefined;
      if (known === undefined) return { selects: ["none"], changes: [], refuses: [] };
      const until = new Date(known.expires).toISOString();
      return {
        selects: [
          `namespaces: ${[...known.namespaces].join(", ")}`,
          ...(known.pods === undefined ? [] : [`pods: ${describeSelector(known.pods)}`]),
        ],
        changes: [
          `waives ${[...known.checks].join(", ")} ${now < known.expires ? `until ${until}` : `(expired at ${until})`}`,
        ],
        refuses: [],
      };
    },
};
