// A pod's status from the state of its containers, as a kubelet writes it.
import type { JsonObject } from "../../../src/core/json.ts";

export type State =
  | { readonly kind: "waiting"; readonly reason: string; readonly message?: string }
  | { readonly kind: "running"; readonly startedAt: string }
  | {
      readonly kind: "terminated";
      readonly exitCode: number;
      readonly startedAt: string;
      readonly finishedAt: string;
    };

export interface ContainerReport {
  readonly name: string;
  readonly image: string;
  readonly state: State;
  readonly lastState: State | undefined;
  readonly ready: boolean;
  readonly started: boolean;
  readonly restartCount: number;
  /** It has ended and will not be restarted. */
  readonly over: boolean;
}

export interface PodReport {
  readonly init: readonly ContainerReport[];
  readonly containers: readonly ContainerReport[];
  readonly podIP: string;
  readonly hostIP: string;
  readonly startTime: string;
  readonly readinessGates: readonly string[];
}

export type Phase = "Pending" | "Running" | "Succeeded" | "Failed";

function stateObject(state: State): JsonObject {
  if (state.kind === "waiting") {
    return {
      waiting: { reason: state.reason, ...(state.message === undefined ? {} : { message: state.message }) },
    };
  }
  if (state.kind === "running") return { running: { startedAt: state.startedAt } };
  const { exitCode, startedAt, finishedAt } = state;
  return { terminated: { exitCode, reason: exitCode === 0 ? "Completed" : "Error", startedAt, finishedAt } };
}

function containerObject(report: ContainerReport): JsonObject {
  const { name, image, ready, started, restartCount, state, lastState } = report;
  return {
    name,
    image,
    imageID: "",
    ready,
    started,
    restartCount,
    state: stateObject(state),
    lastState: lastState === undefined ? {} : stateObject(lastState),
  };
}

function exitCode(report: ContainerReport): number {
  return report.state.kind === "terminated" ? report.state.exitCode : 0;
}

export function phaseOf({ init, containers }: PodReport): Phase {
  if (init.some((report) => report.over && exitCode(report) !== 0)) return "Failed";
  if (containers.every((report) => report.over)) {
    return containers.some((report) => exitCode(report) !== 0) ? "Failed" : "Succeeded";
  }
  const untouched = (report: ContainerReport): boolean =>
    report.state.kind === "waiting" && report.restartCount === 0;
  return containers.some(untouched) ? "Pending" : "Running";
}

function condition(type: string, met: boolean, reason: string): JsonObject {
  return met ? { type, status: "True", reason: null } : { type, status: "False", reason };
}

/** Without transition times: `stamp` adds them, so that equal reports are equal. */
export function statusOf(report: PodReport): JsonObject {
  const initialized = report.init.every((container) => container.over && exitCode(container) === 0);
  const ready = report.containers.every((container) => container.ready);
  return {
    phase: phaseOf(report),
    startTime: report.startTime,
    hostIP: report.hostIP,
    hostIPs: [{ ip: report.hostIP }],
    podIP: report.podIP,
    podIPs: [{ ip: report.podIP }],
    initContainerStatuses: report.init.map(containerObject),
    containerStatuses: report.containers.map(containerObject),
    conditions: [
      condition("Initialized", initialized, "ContainersNotInitialized"),
      condition("ContainersReady", ready, "ContainersNotReady"),
      condition("Ready", ready, "ContainersNotReady"),
      ...report.readinessGates.map((type) => condition(type, true, "")),
    ],
  };
}
