import { allow } from "../../core/decision/decision.ts";
import { moduleSetting } from "../../core/installation/setting-condition.ts";
import { type Context, defineModule, NAMESPACES, PREVIEW_ACCESS } from "../../core/module/module.ts";
import { defineReconciler } from "../../core/module/reconciler.ts";
import { CODES } from "./codes.ts";
import { compile } from "./compile.ts";
import { dashboard } from "./dashboard.ts";
import { declaration } from "./declaration.ts";
import { runHandler } from "./hooks/handler.ts";
import { HANDLERS } from "./hooks/handlers.ts";
import { podSecurityException } from "./kinds.ts";
import { METRICS } from "./metrics.ts";
import { MUTATIONS, SETTING_MUTATIONS } from "./mutations.ts";
import { NODE_READ } from "./nodes/node-os.ts";
import { NODE_METRICS } from "./nodes/reconciler.ts";
import { RUNTIME_CLASSES } from "./os/runtime-class.ts";
import { podOSReconciler } from "./reconciler.ts";
import { type Exception, Exceptions } from "./security/exceptions/exceptions.ts";
import {
  foresightSettings,
  IDENTIFY_POD_OS,
  MODULE,
  REPLACES,
  settingsOf,
  settingsSchema,
} from "./settings.ts";

/** Knows the OS of a pod at admission, and evaluates Pod Security by it. */
export const podOS = defineModule<Exception>({
  name: MODULE,
  summary: declaration.summary,
  dashboard,
  kinds: [podSecurityException],
  reads: [
    NODE_READ,
    RUNTIME_CLASSES,
    {
      ...NAMESPACES,
      keep: [
        ["metadata", "labels"],
        ["metadata", "uid"],
      ],
      why: "know the Pod Security levels of a namespace",
    },
  ],
  hooks: (_policies, _view, installation, gates) =>
    HANDLERS.flatMap(({ hooks }) => hooks(installation, gates)),
  assemble: (policies, installation) => {
    // If the API server's plugin evaluates, it knows no exceptions.
    const { mode } = settingsOf(installation).podSecurity;
    const exceptions = new Exceptions(mode === "Replace" ? policies : []);
    const evaluate = (context: Context) => {
      const handler = HANDLERS.find(({ name }) => name === context.hook);
      return handler === undefined ? allow() : runHandler(handler, context, exceptions);
    };
    return { mutate: evaluate, validate: evaluate };
  },
  compile,
  reconciler: defineReconciler(podOSReconciler),
  foresightSettings,
  access: [
    { group: "", resource: "pods", verbs: ["get"], why: "look up the pod of a binding" },
    {
      ...PREVIEW_ACCESS,
      why: "say what an exception or the level of a namespace changes when it is written",
      when: [REPLACES, ...PREVIEW_ACCESS.when],
    },
    {
      group: "",
      resource: "namespaces",
      verbs: ["get"],
      why: "look up a namespace that is too new to be known",
    },
    { group: "", resource: "nodes", verbs: ["get"], why: "look up a node that is too new to be known" },
    {
      group: "",
      resource: "nodes",
      verbs: ["patch"],
      why: "repair the OS label of a node",
      when: [moduleSetting(MODULE, ["os", "repairNodeLabels"], true, false)],
    },
  ],
  settings: settingsSchema,
  gates: [
    {
      name: IDENTIFY_POD_OS,
      stage: "stable",
      default: true,
      summary: "keeps spec.os of pods and templates, and applies all rules about it",
    },
  ],
  metrics: [...METRICS, ...NODE_METRICS],
  mutations: MUTATIONS,
  settingMutations: SETTING_MUTATIONS,
  codes: CODES,
});
export * from "./library.ts";
