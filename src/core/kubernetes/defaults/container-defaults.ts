import { type JsonObject, stringAt } from "../../json.ts";
import { changeItems, changeMember, fillAbsent, fillZero } from "./fill.ts";
import { defaultPullPolicy } from "./image.ts";

const PROBES = ["livenessProbe", "readinessProbe", "startupProbe"];

/** The API server's defaults of a container of any kind, in a pod and in a template. */
export function defaultedContainer(container: JsonObject): JsonObject {
  let filled = fillZero(container, {
    terminationMessagePath: "/dev/termination-log",
    terminationMessagePolicy: "File",
    imagePullPolicy: defaultPullPolicy(stringAt(container, "image") ?? ""),
  });
  filled = fillAbsent(filled, { resources: {} });
  filled = changeItems(filled, "ports", (port) => fillZero(port, { protocol: "TCP" }));
  filled = changeItems(filled, "env", defaultedVariable);
  for (const probe of PROBES) filled = changeMember(filled, probe, defaultedProbe);
  return changeMember(filled, "lifecycle", (lifecycle) =>
    changeMember(changeMember(lifecycle, "postStart", defaultedHandler), "preStop", defaultedHandler),
  );
}

function defaultedVariable(variable: JsonObject): JsonObject {
  return changeMember(variable, "valueFrom", (source) =>
    changeMember(defaultedFieldRef(source), "fileKeyRef", (reference) =>
      fillAbsent(reference, { optional: false }),
    ),
  );
}

/** A reference to a field of the pod names the version that the field is of. */
export function defaultedFieldRef(holder: JsonObject): JsonObject {
  return changeMember(holder, "fieldRef", (reference) => fillZero(reference, { apiVersion: "v1" }));
}

function defaultedProbe(probe: JsonObject): JsonObject {
  const filled = fillZero(probe, {
    timeoutSeconds: 1,
    periodSeconds: 10,
    successThreshold: 1,
    failureThreshold: 3,
  });
  const handled = defaultedHandler(filled);
  return changeMember(handled, "grpc", (grpc) => fillAbsent(grpc, { service: "" }));
}

function defaultedHandler(handler: JsonObject): JsonObject {
  return changeMember(handler, "httpGet", (action) => fillZero(action, { path: "/", scheme: "HTTP" }));
}
