// Sends the same requests to the earlier version and to this one, with the same policies: an upgrade must not change a
// decision unnoticed.
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { post, readyOf, watched } from "../cli/serving.ts";
import { folder, MAIN, start } from "../cli/usher.ts";
import { earlierVersion, NOT_THERE } from "./earlier-version.ts";
import { recordedRequests } from "./recorded-requests.ts";

const earlier = earlierVersion();
if (earlier === undefined) process.stderr.write(`${NOT_THERE}\n`);
afterAll(() => earlier?.remove());

/** Each request has its own connection. */
const AT_ONCE = 16;

const CONFIGURATION = {
  apiVersion: "usher.dev/v1alpha1",
  kind: "UsherConfiguration",
  spec: {
    kubernetesVersion: "1.37",
    featureGates: { OpenShiftNodeSchedulingPolicy: true },
    modules: { "pod-os": { os: { write: true, contradictions: "Deny" }, podSecurity: { mode: "Replace" } } },
  },
};

/** All responses of one version, in the order of the requests. */
async function answersOf(main: string, source: string, config: string, reviews: readonly object[]) {
  const args = [
    "serve",
    "--port",
    "0",
    "--ops-port",
    "0",
    "-o",
    "json",
    "--source",
    source,
    "--config",
    config,
  ];
  const served = await watched(start(process.execPath, [main, ...args]));
  const { webhook, ca = "" } = readyOf(served);
  const asked = reviews.flatMap((review) => ["mutate", "validate"].map((phase) => ({ phase, review })));
  const answers: { readonly body: string }[] = [];
  for (let i = 0; i < asked.length; i += AT_ONCE) {
    const some = asked.slice(i, i + AT_ONCE).map(async ({ phase, review }) => ({
      phase,
      review,
      ...(await post(`${webhook}/${phase}`, ca, review)),
    }));
    answers.push(...(await Promise.all(some)));
  }
  served.child.kill("SIGINT");
  await served.end;
  return answers;
}

/** Warnings that the earlier version did not have, or worded differently. */
const OTHER_WARNINGS = [
  /^spec: selects 0 of \d+ nodes: /,
  /: while usher is away, no pod can be assigned or bound to nodes of the group /,
  /pods on nodes of the group (that )?are not authorised/,
];

/** Without those warnings, and without provenance: the earlier version did not record the edits of pod-os and node-guard. */
function comparable(answer: { readonly body: string }): object {
  const body = JSON.parse(answer.body, (key, value) => {
    // The earlier version did not record which policy refused.
    if (key.endsWith(".refused-by")) return undefined;
    if (key === "warnings" && Array.isArray(value)) {
      const known = value.filter((warning) => !OTHER_WARNINGS.some((other) => other.test(warning)));
      return known.length === 0 ? undefined : known;
    }
    if (key !== "patch" || typeof value !== "string") return value;
    const operations: { readonly path: string; readonly value?: unknown }[] = JSON.parse(atob(value));
    return operations.flatMap(({ path, value: written, ...operation }) => {
      if (path.endsWith("/usher.dev~1provenance")) return [];
      if (!path.endsWith("/annotations")) return [{ ...operation, path, value: written }];
      const { "usher.dev/provenance": _, ...others } = (written ?? {}) as Record<string, unknown>;
      return Object.keys(others).length === 0 ? [] : [{ ...operation, path, value: others }];
    });
  });
  return { ...answer, body };
}

test.skipIf(earlier === undefined)(
  "requests about all examples are decided as by the earlier version",
  async () => {
    // The earlier version has no preview of policies, whose warnings depend on what is compared at the same time.
    const spec = { ...CONFIGURATION.spec, previewPolicies: false };
    const configs = folder({
      "earlier.yaml": JSON.stringify(CONFIGURATION),
      "now.yaml": JSON.stringify({ ...CONFIGURATION, spec }),
    });
    const source = join(earlier?.folder ?? "", "examples");
    const reviews = recordedRequests(source);
    expect(reviews.length).toBeGreaterThan(300);
    const [before, now] = await Promise.all([
      answersOf(
        join(earlier?.folder ?? "", "src/cli/main.ts"),
        source,
        join(configs, "earlier.yaml"),
        reviews,
      ),
      answersOf(MAIN, source, join(configs, "now.yaml"), reviews),
    ]);
    for (const [i, one] of now.entries()) {
      // Each phase gets the object as sent. The earlier version admitted pods that it had not steered.
      if (one.body.includes("USHER-G13")) continue;
      expect(comparable(one)).toEqual(comparable(before[i] ?? { body: "{}" }));
    }
    // Some requests were changed, and some were refused.
    const texts = now.map((one) => JSON.stringify(one));
    expect(texts.filter((text) => text.includes("JSONPatch")).length).toBeGreaterThan(10);
    expect(texts.filter((text) => /allowed\\*":false/.test(text)).length).toBeGreaterThan(10);
  },
  120_000,
);
