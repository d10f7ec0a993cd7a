// Policies: every policy of every kind, and what is wrong with it.
import type { ListedPolicy, PolicyList } from "../model.ts";
import {
  Badge,
  Busy,
  Changes,
  counted,
  Empty,
  editHref,
  Failure,
  Icon,
  Panel,
  PolicyName,
  ProblemList,
  TextField,
} from "./parts.tsx";
import { address, change, href, parameter, policiesChanged, useData } from "./state.ts";

export function PoliciesView() {
  const { data, error, slow } = useData<PolicyList>("/api/policies", policiesChanged);
  const chosen = data?.policies.find(({ id }) => id === parameter("policy"));
  const search = parameter("q").trim().toLowerCase();
  const shown = (data?.policies ?? []).filter(({ name, namespace, kind, module }) =>
    `${kind} ${namespace}/${name} ${module}`.toLowerCase().includes(search),
  );
  const modules = [...new Set(shown.map(({ module }) => module))];
  const close = href("/policies", { ...Object.fromEntries(address.value.searchParams), policy: undefined });
  const wanted = parameter("policy");
  return (
    <div class={wanted === "" ? "view" : "view with-panel"}>
      <div class="view-main">
        <header class="view-header">
          <div>
            <h1>Policies</h1>
            <p class="muted">
              What each policy selects, changes and refuses, and how many objects are behind it.
            </p>
          </div>
          <div class="controls">
            <TextField
              label="Filter"
              value={parameter("q")}
              placeholder="Name or kind"
              onInput={(q) => change({ q }, true)}
            />
          </div>
        </header>
        {error !== undefined && <Failure error={error} />}
        {data === undefined && error === undefined && <Busy slow={slow} what="Reading policies" />}
        {data !== undefined && data.problems.length > 0 && (
          <section class="notice bad" aria-label="Files with problems">
            <h2>Files that can't be used</h2>
            <ProblemList problems={data.problems} />
          </section>
        )}
        {data !== undefined && data.policies.length === 0 && (
          <Empty title="No policies">
            Create one, and it appears here. Every module's document has an example to start from.
          </Empty>
        )}
        {data !== undefined && data.policies.length > 0 && shown.length === 0 && (
          <Empty title="No policy matches the filter">
            <a href={href("/policies")}>Show all policies</a>
          </Empty>
        )}
        {modules.map((module) => (
          <section class="policy-group">
            <h2 class="group-title">{module}</h2>
            <ul class="rows">
              {shown
                .filter((policy) => policy.module === module)
                .map((policy) => (
                  <PolicyRow key={policy.id} policy={policy} chosen={policy === chosen} />
                ))}
            </ul>
          </section>
        ))}
      </div>
      {wanted !== "" && data !== undefined && (
        <Panel
          title={chosen === undefined ? wanted : policyTitle(chosen)}
          kind={chosen?.kind ?? "Policy"}
          closeHref={close}
        >
          {chosen === undefined ? (
            <Empty title="This policy is not there">
              It may have been removed. <a href={href("/policies")}>Show all policies</a>
            </Empty>
          ) : (
            <PolicyPanel policy={chosen} />
          )}
        </Panel>
      )}
    </div>
  );
}

function policyTitle({ namespace, name }: ListedPolicy): string {
  return namespace === "" ? name : `${namespace}/${name}`;
}

function PolicyRow({ policy, chosen }: { readonly policy: ListedPolicy; readonly chosen: boolean }) {
  const worst = policy.problems.some(({ severity }) => severity === "error") ? "bad" : "warning";
  return (
    <li>
      <a
        class={chosen ? "row chosen" : "row"}
        aria-current={chosen ? "true" : undefined}
        href={href("/policies", { ...Object.fromEntries(address.value.searchParams), policy: policy.id })}
      >
        <span class="row-title">
          <bdi>{policyTitle(policy)}</bdi>
          <span class="muted">{policy.kind}</span>
        </span>
        <span class="row-text">{policy.selects.join(" · ")}</span>
        <span class="row-marks">
          {policy.problems.length > 0 && (
            <Badge tone={worst}>{counted(policy.problems.length, "problems")}</Badge>
          )}
          {policy.conflicts.length > 0 && (
            <Badge tone="warning">{counted(policy.conflicts.length, "conflicts")}</Badge>
          )}
          {policy.objects.length > 0 && (
            <span class="number">
              {policy.objects.map(({ count, noun }) => counted(count, noun)).join(", ")}
            </span>
          )}
        </span>
      </a>
    </li>
  );
}

function Lines({ title, lines }: { readonly title: string; readonly lines: readonly string[] }) {
  if (lines.length === 0) return null;
  return (
    <section>
      <h3>{title}</h3>
      <Changes lines={lines} />
    </section>
  );
}

function PolicyPanel({ policy }: { readonly policy: ListedPolicy }) {
  return (
    <>
      <p class="actions">
        {policy.onMap !== undefined && (
          <a class="button" href={href("/nodes", { lens: policy.onMap.lens, only: policy.onMap.category })}>
            <Icon name="map" />
            Show on the map
          </a>
        )}
        <a class="button" href={editHref(policy)}>
          <Icon name="pencil" />
          Try an edit
        </a>
      </p>
      {policy.problems.length > 0 && (
        <section>
          <h3>Problems</h3>
          <ProblemList problems={policy.problems} />
        </section>
      )}
      <Lines title="Selects" lines={policy.selects} />
      <Lines title="Changes" lines={policy.changes} />
      <Lines title="Refuses" lines={policy.refuses} />
      {policy.conflicts.length > 0 && (
        <section>
          <h3>Conflicts</h3>
          <ul class="plain">
            {policy.conflicts.map((conflict) => (
              <li>
                <div>
                  With <PolicyName link={conflict.with} />: <strong>{conflict.winner.title}</strong> wins
                </div>
                <code>{conflict.about}</code>
                <div class="muted">{conflict.why}</div>
              </li>
            ))}
          </ul>
        </section>
      )}
      {policy.objects.length > 0 && (
        <section>
          <h3>Behind it</h3>
          <p>{policy.objects.map(({ count, noun }) => counted(count, noun)).join(", ")}</p>
        </section>
      )}
    </>
  );
}
