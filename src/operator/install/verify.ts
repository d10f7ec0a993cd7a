import { collectionPath } from "../../cluster/client/discovery.ts";
import { poll } from "../../cluster/client/retry.ts";
import { isObject, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import type { Kind } from "../../core/policy/kind.ts";
import { registeredResources } from "../../core/registration/crd.ts";
import type { Registrant } from "../../core/registration/index.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import { describeObject, type Objects } from "./apply.ts";

/** Usher's refusal of a policy has this code, and no other refusal does. */
const REFUSAL = "USHER-E04";

/** A check of a running installation. */
interface Check {
  readonly what: string;
  /** Why it failed, and the remedy. @default it passed */
  readonly problem?: string;
  /** Why there was nothing to check. */
  readonly skipped?: string;
}

/** Whether usher's webhooks are registered, and whether a review of the API server reaches usher and its refusal comes back. */
export async function verifyInstallation(
  objects: Objects,
  registrant: Registrant,
  timeoutMs: number,
): Promise<Check[]> {
  let checks: Check[] = [];
  // An API server follows new webhook configurations within a second or two.
  await poll(timeoutMs, async () => {
    checks = [...(await registeredWebhooks(objects, registrant)), await review(objects, registrant)];
    return checks.every(({ problem }) => problem === undefined);
  });
  return checks;
}

async function registeredWebhooks(objects: Objects, { declaredHooks }: Registrant): Promise<Check[]> {
  const checks: Check[] = [];
  for (const [phase, kind] of [
    ["mutate", "Mutating"],
    ["validate", "Validating"],
  ] as const) {
    const object = {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: `${kind}WebhookConfiguration`,
      metadata: { name: OWN_NAMES.webhooks },
    };
    const what = describeObject(object);
    const live = await objects.read(object);
    if (live === undefined) checks.push({ what, problem: "does not exist; see the log of usher's leader" });
    else if (listAt(live, "webhooks").length === 0)
      checks.push(
        declaredHooks.some((hook) => hook.phase === phase && hook.rules.length > 0)
          ? { what, problem: "has no webhooks; see the log of usher's leader" }
          : { what, skipped: "no module of this configuration needs any without policies" },
      );
    else checks.push({ what });
  }
  return checks;
}

/** A dry run: nothing is stored, even if the API server does not call usher. */
async function review(objects: Objects, declarations: Registrant): Promise<Check> {
  const kind = registeredResources(declarations).find(
    (one): one is Kind & { refused: JsonObject } => "refused" in one && isObject(one.refused),
  );
  const [version] = kind?.versions ?? [];
  if (kind === undefined || version === undefined)
    return { what: "review by usher", skipped: "no module that is on has a policy to try it with" };
  const { group, plural: resource, scope } = kind;
  const { namespace } = declarations.installation;
  const path = collectionPath(
    { group, version: version.name, resource, namespaced: scope === "Namespaced" },
    ...(scope === "Namespaced" ? [namespace] : []),
  );
  const answer = await objects.client.request("POST", `${path}?dryRun=All`, {
    body: {
      apiVersion: `${group}/${version.name}`,
      kind: kind.kind,
      metadata: { name: "usher-verify" },
      spec: kind.refused,
    },
  });
  const what = `review of an invalid ${kind.kind} by usher`;
  const message = stringAt(answer.body, "message") ?? "";
  if (message.includes(REFUSAL)) return { what };
  if (answer.status < 300)
    return {
      what,
      problem:
        "the API server accepted it and did not call usher: see whether it can reach the port of usher's pods",
    };
  return { what, problem: `the API server responded ${answer.status}: ${message}` };
}
