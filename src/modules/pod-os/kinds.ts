import { z } from "zod";
import { DNS_LABEL_PATTERN, MAX_NAMES, NAME_LENGTH } from "../../core/kubernetes/schemas/bounds.ts";
import { labelSelector } from "../../core/kubernetes/schemas.ts";
import type { Kind } from "../../core/policy/kind.ts";
import { type Exception, exceptionProblems, prepareException } from "./exceptions/exceptions.ts";
import { exceptionStatus, missingNamespaces } from "./exceptions/status.ts";
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
  // Only usher compares it with the time.
  refused: { checks: ["hostPathVolumes"], namespaces: ["default"], expires: "2000-01-01T00:00:00Z" },
  prepare: prepareException,
};
