import { judgeNamespace } from "../admission/judge-namespace.ts";
import { judgePod } from "../admission/judge-pod.ts";
import { MODULE, settingsOf } from "../settings.ts";
import type { Part } from "./part.ts";

const CHANGES = ["CREATE", "UPDATE"] as const;

/** Judges pods and namespaces in the place of the API server's plugin PodSecurity. */
export const podSecurity: Part = {
  name: "pod-security",
  hooks: (installation) =>
    settingsOf(installation).podSecurity.mode === "Replace"
      ? [
          {
            name: "pod-security",
            module: MODULE,
            phase: "validate",
            rules: [
              {
                groups: [""],
                versions: ["v1"],
                resources: ["pods"],
                operations: CHANGES,
                scope: "Namespaced",
              },
              {
                groups: [""],
                versions: ["v1"],
                resources: ["pods/ephemeralcontainers"],
                operations: ["UPDATE"],
                scope: "Namespaced",
              },
              {
                groups: [""],
                versions: ["v1"],
                resources: ["namespaces"],
                operations: CHANGES,
                scope: "Cluster",
              },
            ],
            failure: "closed",
            // Labels of the control plane's namespaces hold too, and usher must not be in the way there.
            openTwin: true,
            timeoutSeconds: 5,
            sideEffects: "NoneOnDryRun",
          },
        ]
      : [],
  evaluate: (context, exceptions) =>
    context.request.resource.resource === "namespaces"
      ? judgeNamespace(context, exceptions)
      : judgePod(context, exceptions),
};
