// Live: decisions as they come.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Tone } from "../../core/module/shown.ts";
import type { Decisions, LiveDecision } from "../model.ts";
import {
  Badge,
  Busy,
  Changes,
  counted,
  Empty,
  Failure,
  Icon,
  ObjectLink,
  PolicyNames,
  Segments,
  Select,
  useShown,
} from "./parts.tsx";
import { type ApiFailure, api, change, connections, onDecisions, parameter } from "./state.ts";

const KEPT = 1_000;

const TONES: Readonly<Record<LiveDecision["verdict"], Tone>> = {
  refused: "bad",
  changed: "plain",
  warned: "warning",
};

export function LiveView() {
  const decisions = useSignal<readonly LiveDecision[] | undefined>(undefined);
  const note = useSignal("");
  const error = useSignal<ApiFailure | undefined>(undefined);
  const paused = useSignal(false);
  const waiting = useSignal<readonly LiveDecision[]>([]);
  const said = useSignal("");
  const ids = useRef(new Set<number>());
  const connected = connections.value;

  useEffect(() => {
    let gone = false;
    api<Decisions>("/api/decisions").then(
      (answer) => {
        if (gone) return;
        decisions.value = answer.decisions;
        note.value = answer.note;
        error.value = undefined;
        ids.current = new Set(answer.decisions.map(({ id }) => id));
      },
      (failure) => {
        if (!gone && decisions.value === undefined) error.value = failure as ApiFailure;
      },
    );
    return () => {
      gone = true;
    };
  }, [connected]);
  useEffect(
    () =>
      onDecisions((fresh) => {
        // An event that is seen again comes with the same id and a higher count.
        const renewed = new Set(fresh.map(({ id }) => id));
        const target = paused.value ? waiting : decisions;
        const before = target.value ?? [];
        target.value = [...[...fresh].reverse(), ...before.filter(({ id }) => !renewed.has(id))].slice(
          0,
          KEPT,
        );
        if (!paused.value) said.value = `${counted(fresh.length, "decisions")} more`;
      }),
    [],
  );
  const resume = (): void => {
    paused.value = !paused.value;
    if (paused.value) return;
    const renewed = new Set(waiting.value.map(({ id }) => id));
    decisions.value = [
      ...waiting.value,
      ...(decisions.value ?? []).filter(({ id }) => !renewed.has(id)),
    ].slice(0, KEPT);
    waiting.value = [];
  };

  const all = decisions.value ?? [];
  const [verdict, namespace, policy, user] = ["verdict", "namespace", "policy", "user"].map(parameter);
  const shown = all.filter(
    (one) =>
      (verdict === "" || one.verdict === verdict) &&
      (namespace === "" || one.object.namespace === namespace) &&
      (policy === "" || one.policies.some(({ title }) => title === policy)) &&
      (user === "" || one.user === user),
  );
  const { limit, More } = useShown(100, [verdict, namespace, policy, user].join(" "));
  const choices = (values: readonly string[], chosen: string | undefined) => [
    { value: "", title: "All" },
    ...[...new Set([...values, chosen ?? ""])]
      .filter((value) => value !== "")
      .sort()
      .map((value) => ({ value, title: value })),
  ];
  return (
    <div class="view">
      <div class="view-main">
        <header class="view-header">
          <div>
            <h1>Live</h1>
            <p class="muted">{note.value}</p>
          </div>
          <div class="controls">
            <Segments
              label="Decision"
              value={verdict ?? ""}
              choices={["", "refused", "changed", "warned"].map((value) => ({
                value,
                title: value === "" ? "All" : `${value[0]?.toUpperCase()}${value.slice(1)}`,
              }))}
              onChange={(value) => change({ verdict: value }, true)}
            />
            <Select
              label="Namespace"
              value={namespace ?? ""}
              choices={choices(
                all.map(({ object }) => object.namespace),
                namespace,
              )}
              onChange={(value) => change({ namespace: value }, true)}
            />
            <Select
              label="Policy"
              value={policy ?? ""}
              choices={choices(
                all.flatMap(({ policies }) => policies.map(({ title }) => title)),
                policy,
              )}
              onChange={(value) => change({ policy: value }, true)}
            />
            <Select
              label="User"
              value={user ?? ""}
              choices={choices(
                all.map((one) => one.user),
                user,
              )}
              onChange={(value) => change({ user: value }, true)}
            />
            <button type="button" class="button" aria-pressed={paused.value} onClick={resume}>
              <Icon name={paused.value ? "play" : "pause"} />
              {paused.value
                ? `Resume${waiting.value.length > 0 ? ` (${waiting.value.length})` : ""}`
                : "Pause"}
            </button>
          </div>
        </header>
        <p class="unseen" role="status">
          {said.value}
        </p>
        {error.value !== undefined && <Failure error={error.value} />}
        {decisions.value === undefined && error.value === undefined && (
          <Busy slow={false} what="Reading decisions" />
        )}
        {decisions.value !== undefined && all.length === 0 && <Empty title="No decisions yet" />}
        {all.length > 0 && shown.length === 0 && <Empty title="No decision matches the filters" />}
        {shown.length > 0 && (
          <div class="table-box" role="region" tabIndex={0} aria-label="Decisions, the latest first">
            <table class="decisions">
              <thead>
                <tr>
                  <th scope="col">Time</th>
                  <th scope="col">Decision</th>
                  <th scope="col">Object</th>
                  <th scope="col">User</th>
                  <th scope="col">By</th>
                  <th scope="col">What</th>
                </tr>
              </thead>
              <tbody>
                {shown.slice(0, limit).map((decision) => (
                  <DecisionRow key={decision.id} decision={decision} />
                ))}
              </tbody>
            </table>
          </div>
        )}
        <More total={shown.length} noun="decisions" />
      </div>
    </div>
  );
}

function DecisionRow({ decision }: { readonly decision: LiveDecision }) {
  const { time, verdict, operation, object, user, policies, lines, count } = decision;
  const at = new Date(time);
  return (
    <tr>
      <td class="number muted">
        <time dateTime={time} title={time}>
          {Number.isNaN(at.getTime()) ? time : at.toLocaleTimeString("en-GB")}
        </time>
      </td>
      <td>
        <Badge tone={TONES[verdict]}>{verdict}</Badge>
        {count > 1 && <span class="muted number"> {count}×</span>}
      </td>
      <th scope="row">
        <ObjectLink object={object} />
        <span class="muted operation">{operation.toLowerCase()}</span>
      </th>
      <td class="user">
        <bdi>{user}</bdi>
      </td>
      <td>
        <PolicyNames links={policies} />
      </td>
      <td class="what">
        {verdict === "changed" ? <Changes lines={lines} /> : lines.map((line) => <p>{line}</p>)}
      </td>
    </tr>
  );
}
