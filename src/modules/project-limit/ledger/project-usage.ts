import { z } from "zod";
import { isObject, type Json, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import type { StateKind } from "../../../core/policy/kind.ts";
import { describeSubject, type LimitSubject } from "../subject.ts";

/** The resource of ledgers. */
export const USAGES = "projectusages.usher.dev";

/**
 * The maximum number of entries of a ledger: with names and uids of full length they take 0.9 MB, and etcd accepts 1.5
 * MB. A subject with more is counted by the cluster's namespaces, best effort.
 */
export const MOST_ENTRIES = 5_000;

/** More than any name of a namespace, which has at most 63 characters. */
export const NAME_LENGTH = 253;
const UID_LENGTH = 128;
const SUBJECT_LENGTH = 4_096;

const entry = z.strictObject({
  name: z.string().max(NAME_LENGTH).describe("The name of the namespace."),
  uid: z
    .string()
    .max(UID_LENGTH)
    .optional()
    .describe("The uid of the namespace, where its own creation was admitted."),
  request: z
    .string()
    .max(UID_LENGTH)
    .optional()
    .describe(
      "The uid of the review, where a ProjectRequest was admitted: the namespace will have a uid of its own.",
    ),
  replaces: z
    .string()
    .max(UID_LENGTH)
    .optional()
    .describe("The uid of the namespace that had this name when the ProjectRequest was admitted."),
});

export const projectUsage: StateKind = {
  group: "usher.dev",
  kind: "ProjectUsage",
  plural: "projectusages",
  singular: "projectusage",
  scope: "Cluster",
  summary:
    "the projects of one user or service account: usher's own record, written when a creation is admitted",
  versions: [
    {
      name: "v1alpha1",
      storage: true,
      spec: z.strictObject({
        subject: z.string().max(SUBJECT_LENGTH).describe("Whose projects these are."),
        rule: z
          .string()
          .max(64)
          .optional()
          .describe("The rule of the ProjectRequestLimit by which a creation was last admitted."),
        entries: z
          .array(entry.describe("A project that exists, or whose creation was admitted."))
          .max(MOST_ENTRIES)
          .optional()
          .meta({
            description:
              "Projects that exist, and those that may appear because their creation was admitted.",
            "x-kubernetes-list-type": "atomic",
          }),
      }),
      columns: [
        { name: "Subject", type: "string", jsonPath: ".spec.subject" },
        { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
      ],
    },
  ],
  verbs: ["create", "update", "patch", "delete"],
};

/** One place of a ledger: a project that was admitted. */
export type LedgerEntry = z.infer<typeof entry>;

/** The subject of this ledger. The prefix of its name distinguishes service account namespaces from users of the same name. */
export function subjectIn(ledger: Json | undefined): LimitSubject {
  const text = stringAt(ledger, "spec", "subject") ?? "";
  const isNamespace = /^nh?-/.test(stringAt(ledger, "metadata", "name") ?? "");
  return isNamespace ? { serviceAccountsOf: text.slice(text.lastIndexOf(":") + 1) } : { username: text };
}

export function entriesIn(ledger: Json | undefined): LedgerEntry[] {
  return listAt(ledger, "spec", "entries").filter(isEntry);
}

function isEntry(value: Json | undefined): value is LedgerEntry & JsonObject {
  return isObject(value) && typeof value["name"] === "string";
}

/** Equal for two entries of one reservation, and for no others. */
export function entryKey({ name, uid, request }: LedgerEntry): string {
  return JSON.stringify([name, uid ?? null, request ?? null]);
}

/** Whose a ledger is, as it is written there: of a name that is longer its beginning, and the name of the ledger has the rest's hash. */
export function subjectText(subject: LimitSubject): string {
  return describeSubject(subject).slice(0, SUBJECT_LENGTH).toWellFormed();
}

/** Groups are known only from requests, so the resulting rule is kept for the status and metrics. */
export function ledgerOf(subject: LimitSubject, entries: readonly LedgerEntry[], rule?: string): JsonObject {
  return {
    apiVersion: "usher.dev/v1alpha1",
    kind: "ProjectUsage",
    spec: {
      subject: subjectText(subject),
      ...(rule === undefined ? {} : { rule }),
      entries: entries as unknown as Json[],
    },
  };
}
