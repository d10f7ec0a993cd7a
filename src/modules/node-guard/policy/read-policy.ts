import { at, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { nameOf } from "../../../core/kubernetes/object.ts";
import type { Prepared } from "../../../core/policy/kind.ts";
import { problem } from "../../../core/policy/problem.ts";
import { MOST_HOURS, readOverride } from "../overrides/override.ts";
import { CONSISTENCIES, type GuardPolicy } from "./guard-policy.ts";
import { notOff, prepareGroups } from "./prepare.ts";

const GROUPS = ["spec", "groups"];
const SCHEDULING_GROUPS = ["spec", "schedulingGroups"];

export const CONFIGS = "nodeschedulingpolicyconfigs.scheduling.openshift.io";
export const POLICIES = "nodeschedulingpolicies.scheduling.openshift.io";
export const SCHEDULERS = "schedulers.config.openshift.io";
export const OVERRIDES = "nodeguardoverrides.usher.dev";

type Read = (object: JsonObject) => Prepared<GuardPolicy>;

/** What an object of each kind becomes. Never throws. */
export const READERS: Readonly<Record<string, Read>> = {
  [CONFIGS]: (object) => {
    const { groups, problems } = prepareGroups(listAt(object, ...GROUPS), "file", GROUPS);
    return { policy: { kind: "config", groups }, problems };
  },
  [POLICIES]: (object) => {
    const { groups, problems } = prepareGroups(listAt(object, ...GROUPS), "NodeSchedulingPolicy", GROUPS);
    const written = notOff(stringAt(object, "spec", "consistency"));
    const consistency = CONSISTENCIES.find((one) => one === written) ?? "Corrected";
    const [name, uid] = [nameOf(object), stringAt(object, "metadata", "uid")];
    const ref = { kind: "NodeSchedulingPolicy", name, ...(uid === undefined ? {} : { uid }) };
    return { policy: { kind: "policy", name, ref, consistency, groups }, problems };
  },
  [SCHEDULERS]: (object) => {
    const list = listAt(object, ...SCHEDULING_GROUPS);
    const { groups, problems } = prepareGroups(list, "Scheduler", SCHEDULING_GROUPS);
    const mastersSchedulable = at(object, "spec", "mastersSchedulable") === true;
    return { policy: { kind: "scheduler", name: nameOf(object), mastersSchedulable, groups }, problems };
  },
  [OVERRIDES]: (object) => {
    const override = readOverride(object);
    if (override !== undefined) return { policy: { kind: "override", override }, problems: [] };
    const message = `must be after from, and at most ${MOST_HOURS} hours after it`;
    return { policy: undefined, problems: [problem(["spec", "until"], message)] };
  },
};
