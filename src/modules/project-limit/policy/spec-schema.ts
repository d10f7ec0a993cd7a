import { z } from "zod";
import { labels, OPERAND_FIELDS } from "./operand-schema.ts";

/** More classes of users than an administrator can distinguish. */
const MAX_RULES = 256;
/** User and group names have no limit; LDAP names are the longest in use. */
const IDENTITY_LENGTH = 512;
/** Exempt and trusted identities are in match conditions, which the API server evaluates for each creation. */
const MAX_IDENTITIES = 256;
const INT32_MAX = 2 ** 31 - 1;

function maximum(description: string) {
  return z.int().min(0).max(INT32_MAX).nullish().describe(description);
}

function identities(description: string, least = 0) {
  return z
    .array(z.string().min(1).max(IDENTITY_LENGTH))
    .min(least)
    .max(MAX_IDENTITIES)
    .nullish()
    .meta({ description, "x-kubernetes-list-type": "atomic" });
}

const selector = labels(
  "selector",
  "Labels that the User object must have, with exactly these values. Absent or empty: any user.",
);

const rule = z
  .strictObject({
    selector,
    groups: identities("Groups, one of which the user must be in, as the API server knows them.", 1),
    users: identities("User names, one of which must be the user's.", 1),
    maxProjects: maximum(
      "How many projects each user of this rule may have; 0 means none. Absent or null: unlimited.",
    ),
  })
  .describe(
    "A class of users and their maximum. All that is given of selector, groups and users must match.",
  );

/** The spec of a ProjectRequestLimit. The defaults are not written into the object, so that it stays as written. */
export const limitSpec = z.strictObject({
  limits: z.array(rule).max(MAX_RULES).nullish().meta({
    description: "Classes of users in order; the first that matches counts. No match: unlimited.",
    "x-kubernetes-list-type": "atomic",
  }),
  maxProjectsForSystemUsers: maximum(
    "How many projects each system user may have: those whose name can't be a User object's, such as system:admin. Absent or null: unlimited.",
  ),
  maxProjectsForServiceAccounts: maximum(
    "How many projects each service account may have. Absent or null: unlimited.",
  ),
  serviceAccountsPer: z
    .enum(["Account", "Namespace"])
    .nullish()
    .describe(
      "Whether maxProjectsForServiceAccounts is for each account, or for all accounts of a namespace together. Defaults to Account.",
    ),
  count: z
    .enum(["Exact", "BestEffort"])
    .nullish()
    .describe(
      "Exact: creations are recorded in a ledger, so that concurrent requests never exceed the limit. BestEffort: existing namespaces are counted alone. Defaults to Exact.",
    ),
  failurePolicy: z
    .enum(["Fail", "Ignore"])
    .nullish()
    .describe(
      "What happens to the requests of users that can be limited while usher does not answer. Defaults to Fail.",
    ),
  timeoutSeconds: z
    .int()
    .min(1)
    .max(30)
    .nullish()
    .describe("How long the API server waits for usher. Defaults to 5."),
  namespaces: z
    .strictObject({})
    .nullish()
    .describe(
      "Judges the creation of Namespaces too, and stamps them with their requester: for clusters without ProjectRequests. Absent: only ProjectRequests are judged.",
    ),
  exempt: z
    .strictObject({
      users: identities("Exempt user names."),
      groups: identities(
        "Exempt groups. Defaults to system:masters, system:serviceaccounts:kube-system and system:serviceaccounts:openshift-apiserver.",
      ),
    })
    .nullish()
    .describe("Identities that are never limited, and may set and change the requester of a Namespace."),
  trustedAnnotators: identities(
    "User names that may create Namespaces on behalf of others: the Namespace counts for the user that its annotation openshift.io/requester names.",
  ),
  extensions: z
    .enum(["Enabled", "Disabled"])
    .nullish()
    .describe(
      "Disabled: the answers are those of OpenShift 3.11's plugin; no identity is exempt, projects are counted by best effort, and fields that the plugin does not have are refused. Defaults to Enabled.",
    ),
  ...OPERAND_FIELDS,
});
