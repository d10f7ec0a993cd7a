import { z } from "zod";
import { checkDnsLabel, checkSubdomain } from "../../core/kubernetes/names.ts";

const GROUP = "pod-security.admission.config.k8s.io";

/** The same fields in all three. */
const API_VERSIONS = [`${GROUP}/v1`, `${GROUP}/v1beta1`, `${GROUP}/v1alpha1`] as const;

/** As in namespace labels, but an empty string means the default. */
const level = z.enum(["privileged", "baseline", "restricted", ""], {
  error: "must be one of privileged, baseline, restricted",
});

const version = z
  .string()
  .regex(/^(?:latest|v1\.(?:0|[1-9][0-9]{0,17}))?$/, { error: 'must be "latest" or "v1.x"' });

function names(check: (text: string) => string | undefined) {
  const name = z.string().superRefine((text, context) => {
    const wrong = check(text);
    if (wrong !== undefined) context.addIssue({ code: "custom", message: wrong });
  });
  return z
    .array(name)
    .superRefine((list, context) => {
      for (const [i, one] of list.entries()) {
        if (list.indexOf(one) < i)
          context.addIssue({ code: "custom", path: [i], message: `${JSON.stringify(one)} is a duplicate` });
      }
    })
    .nullish();
}

/** Upstream's PodSecurityConfiguration, strict as the API server decodes it. */
export const configurationSchema = z.strictObject({
  apiVersion: z.enum(API_VERSIONS),
  kind: z.literal("PodSecurityConfiguration"),
  defaults: z
    .strictObject({
      enforce: level.optional(),
      "enforce-version": version.optional(),
      audit: level.optional(),
      "audit-version": version.optional(),
      warn: level.optional(),
      "warn-version": version.optional(),
    })
    .nullish()
    .describe("The policy of namespaces without labels."),
  exemptions: z
    .strictObject({
      usernames: names((text) => (text === "" ? "must not be empty" : undefined)),
      namespaces: names(checkDnsLabel),
      runtimeClasses: names(checkSubdomain),
    })
    .nullish()
    .describe("Requests that no mode judges."),
});

export type PodSecurityConfiguration = z.infer<typeof configurationSchema>;
