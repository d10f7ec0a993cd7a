import { expect, test } from "vitest";
import { at } from "../../../src/core/json.ts";
import { type ContainerReport, type PodReport, phaseOf, type State, statusOf } from "./status.ts";

const waiting: State = { kind: "waiting", reason: "ContainerCreating" };
const running: State = { kind: "running", startedAt: "t" };
function ended(exitCode: number): State {
  return { kind: "terminated", exitCode, startedAt: "t", finishedAt: "u" };
}

function container(state: State, more: Partial<ContainerReport> = {}): ContainerReport {
  return {
    name: "c",
    image: "i",
    state,
    lastState: undefined,
    ready: false,
    started: false,
    restartCount: 0,
    over: false,
    ...more,
  };
}

function pod(containers: readonly ContainerReport[], init: readonly ContainerReport[] = []): PodReport {
  return { init, containers, podIP: "10.0.0.2", hostIP: "10.0.0.1", startTime: "t", readinessGates: [] };
}

const over = { over: true };

test.each([
  ["nothing has started", pod([container(waiting)]), "Pending"],
  ["one of two has started", pod([container(running), container(waiting)]), "Pending"],
  ["all run", pod([container(running), container(running)]), "Running"],
  ["one waits for its restart", pod([container(waiting, { restartCount: 1 })]), "Running"],
  ["one has ended and the other runs", pod([container(ended(0), over), container(running)]), "Running"],
  ["all succeeded", pod([container(ended(0), over)]), "Succeeded"],
  ["one failed", pod([container(ended(0), over), container(ended(1), over)]), "Failed"],
  ["an init container failed permanently", pod([container(waiting)], [container(ended(1), over)]), "Failed"],
  ["an init container runs", pod([container(waiting)], [container(running)]), "Pending"],
])("the phase is right when %s", (_, report, phase) => {
  expect(phaseOf(report)).toBe(phase);
});

test("a pod is Ready when every container is", () => {
  const ready = (report: PodReport) => at(statusOf(report), "conditions", 2);
  const well = container(running, { ready: true });
  expect(ready(pod([well, well]))).toMatchObject({ type: "Ready", status: "True" });
  expect(ready(pod([well, container(running)]))).toMatchObject({ type: "Ready", status: "False" });
});
