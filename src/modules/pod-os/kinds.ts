import { z } from "zod";
import type { JsonObject } from "../../core/json.ts";
import { DNS_LABEL_PATTERN, MAX_NAMES, NAME_LENGTH } from "../../core/kubernetes/schemas/bounds.ts";
import { labelSelector } from "../../core/kubernetes/schemas.ts";
import type { Kind, Sample } from "../../core/policy/kind.ts";
import { type Exception, exceptionProblems, prepareException } from "./security/exceptions/exceptions.ts";
import { exceptionStatus, missingNamespaces } from "./security/exceptions/status.ts";
import { REPLACES } from "./settings.ts";

const TEXT_LENGTH = 1_024;

function list(item: z.ZodString, description: string) {
  return z.array(item).min(1).max(MAX_NAMES).meta({ description, "x-kubernetes-list-type": "atomic" });
}

const spec = z.strictObject({
  checks: list(
    z.string().min(1).max(NAME_LENGTH),
    "The checks that are waived, by their ids: hostPathVolumes, capabilities_baseline.",
  ),
  namespaces: list(
    z.string().min(1).max(63).meta({ pattern: DNS_LABEL_PATTERN }),
    "The namespaces of the pods that the exception is for, by name.",
  ),
  podSelector: labelSelector
    .optional()
    .describe("The labels of the pods that the exception is for. Defaults to all of these namespaces."),
  serviceAccounts: list(
    z.string().min(1).max(NAME_LENGTH),
    "The service accounts of the pods that the exception is for. Defaults to all.",
  ).optional(),
  images: list(
    z.string().min(1).max(TEXT_LENGTH),
    "The images of the containers that the exception is for; `*` at the end stands for any text. Defaults to all.",
  ).optional(),
  containers: list(
    z.string().min(1).max(NAME_LENGTH),
    "The names of the containers that the exception is for. Defaults to all.",
  ).optional(),
  owner: z
    .string()
    .min(1)
    .max(TEXT_LENGTH)
    .optional()
    .describe("Who answers for the exception: a team, an address."),
  reason: z.string().min(1).max(TEXT_LENGTH).optional().describe("Why the exception is needed."),
  expires: z.iso.datetime({ offset: true }).max(64).meta({
    description: "When the exception ends, in RFC 3339 form. At most a year from now.",
    format: "date-time",
  }),
});

const DAY_MS = 24 * 60 * 60_000;

function exporterOf(serviceAccountName: string): JsonObject {
  const containers = [{ name: "exporter", image: "example.com/exporter:1.0" }];
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "exporter", namespace: "monitoring" },
    spec: { serviceAccountName, hostPID: true, containers },
  };
}

/** An exception ends within a year, so the first one ends a quarter after it is written. */
function exporterSample(now: number): Sample {
  const day = (days: number) =>
    new Date(Math.floor(now / DAY_MS) * DAY_MS + days * DAY_MS).toISOString().replace(".000Z", "Z");
  const expires = day(90);
  const labels = { "pod-security.kubernetes.io/enforce": "baseline" };
  const refused = { verdict: "deny", causes: [{ reason: "hostNamespaces", field: "spec.hostPID" }] };
  return {
    name: "node-exporter",
    configuration: { modules: { "pod-os": { podSecurity: { mode: "Replace" } } } },
    spec: {
      checks: ["hostNamespaces"],
      namespaces: ["monitoring"],
      serviceAccounts: ["node-exporter"],
      owner: "observability",
      reason: "reads the processes of the host",
      expires,
    },
    objects: [{ apiVersion: "v1", kind: "Namespace", metadata: { name: "monitoring", labels } }],
    cases: [
      {
        name: "the exporter may see the processes of the host",
        time: day(89),
        object: exporterOf("node-exporter"),
        expect: { verdict: "allow" },
      },
      {
        name: "the exporter is refused once the exception has ended",
        time: day(90.5),
        object: exporterOf("node-exporter"),
        expect: refused,
      },
      {
        name: "a pod of another service account is refused",
        time: day(89),
        object: exporterOf("default"),
        expect: refused,
      },
    ],
  };
}

export const podSecurityException: Kind<Exception> = {
  group: "usher.dev",
  kind: "PodSecurityException",
  plural: "podsecurityexceptions",
  singular: "podsecurityexception",
  shortNames: ["pse"],
  scope: "Cluster",
  standing: "resource",
  summary: "waives single checks of Pod Security for some pods, until a date",
  registered: [REPLACES],
  versions: [
    {
      name: "v1alpha1",
      storage: true,
      spec,
      status: exceptionStatus,
      columns: [
        { name: "Expires", type: "date", jsonPath: ".spec.expires", description: "When the exception ends." },
        {
          name: "Active",
          type: "string",
          jsonPath: '.status.conditions[?(@.type=="Active")].status',
          description: "Whether the exception counts now.",
        },
        { name: "Owner", type: "string", jsonPath: ".spec.owner" },
        { name: "Reason", type: "string", jsonPath: ".spec.reason", priority: 1 },
        { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
      ],
    },
  ],
  check: (object, view, _installation, now) => [
    ...exceptionProblems(object, now),
    ...missingNamespaces(object, view),
  ],
  sample: exporterSample,
  // Only usher compares it with the time.
  refused: { checks: ["hostPathVolumes"], namespaces: ["default"], expires: "2000-01-01T00:00:00Z" },
  prepare: prepareException,
};
