import { describe, expect, test } from "vitest";
import { Gates } from "../installation/gates.ts";
import {
  CERTIFICATE_MODES,
  type CertificateSettings,
  DEFAULT_INSTALLATION,
  type Installation,
} from "../installation/installation.ts";
import { at, type JsonObject, listAt, stringAt } from "../json.ts";
import { BUNDLE_WRITERS, certificateObjects, SERVING_SECRET } from "./certificates.ts";
import { type Registration, registration } from "./index.ts";

const NAMESPACE = "hall";

function installed(certificates?: CertificateSettings, more: Partial<Installation> = {}): Registration {
  const installation = {
    ...DEFAULT_INSTALLATION,
    namespace: NAMESPACE,
    ...(certificates === undefined ? {} : { certificates }),
    ...more,
  };
  return registration(
    { modules: [], installation, gates: new Gates([]), declaredHooks: [] },
    {
      endpoint: { service: { name: "usher", namespace: NAMESPACE, port: 443 } },
      workload: { image: "usher:1" },
    },
  );
}

const kind = ({ objects }: Registration, wanted: string): JsonObject[] =>
  objects.filter((one) => one["kind"] === wanted && at(one, "metadata", "name") !== "usher-watchdog");

function only(all: Registration, wanted: string): JsonObject {
  const [found, second] = kind(all, wanted);
  if (found === undefined || second !== undefined) throw new Error(`not one ${wanted}`);
  return found;
}

describe.each(CERTIFICATE_MODES)("certificates: %s", (mode) => {
  const all = installed({ mode });
  const pod = at(only(all, "Deployment"), "spec", "template", "spec");
  const own = mode === "Own";

  test("only mode Own may read a Secret, and only usher's", () => {
    const rules = all.objects.flatMap((one) => listAt(one, "rules"));
    const secrets = rules.filter((rule) => listAt(rule, "resources").some((one) => one === "secrets"));
    expect(secrets.map((rule) => at(rule, "resourceNames"))).toEqual(own ? [["usher-certificates"]] : []);
  });

  test("the Secret is mounted in every other mode, and served from there", () => {
    const volumes = listAt(pod, "volumes").filter((one) => at(one, "secret") !== undefined);
    expect(volumes.map((one) => stringAt(one, "secret", "secretName"))).toEqual(own ? [] : [SERVING_SECRET]);
    const mounts = listAt(pod, "containers", 0, "volumeMounts").filter(
      (one) => stringAt(one, "name") === "certificates",
    );
    const folder = stringAt(mounts[0], "mountPath") ?? "";
    const args = listAt(pod, "containers", 0, "args").filter((one) => String(one).startsWith("--tls-"));
    expect(args).toEqual(own ? [] : [`--tls-cert=${folder}/tls.crt`, `--tls-key=${folder}/tls.key`]);
  });

  test("both configurations request the bundle from the injector, if there is one", () => {
    for (const name of ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]) {
      const injector = {
        CertManager: { "cert-manager.io/inject-ca-from": "hall/usher" },
        ServiceCA: { "service.beta.openshift.io/inject-cabundle": "true" },
      }[mode as string];
      const annotations = at(only(all, name), "metadata", "annotations");
      expect(annotations).toEqual({ ...injector, "usher.dev/openable": "" });
      expect(injector === undefined).toBe(BUNDLE_WRITERS[mode] === "usher");
    }
  });

  test("only the service CA gets the annotation to sign for the Service", () => {
    const [webhook, metrics] = kind(all, "Service");
    expect(at(metrics, "metadata", "annotations")).toBeUndefined();
    expect(at(webhook, "metadata", "annotations")).toEqual(
      mode !== "ServiceCA"
        ? undefined
        : {
            "service.beta.openshift.io/serving-cert-secret-name": SERVING_SECRET,
            "service.alpha.openshift.io/serving-cert-secret-name": SERVING_SECRET,
          },
    );
  });
});

test("cert-manager issues a CA, and the certificate by it, for the names of the Service", () => {
  const all = installed({ mode: "CertManager" });
  expect(kind(all, "Issuer").map((one) => at(one, "spec"))).toEqual([
    { selfSigned: {} },
    { ca: { secretName: "usher-ca" } },
  ]);
  const [authority, serving] = kind(all, "Certificate");
  expect(at(authority, "spec")).toMatchObject({
    isCA: true,
    secretName: "usher-ca",
    issuerRef: { name: "usher-selfsigned", kind: "Issuer" },
  });
  expect(stringAt(serving, "metadata", "name")).toBe("usher");
  expect(at(serving, "spec")).toMatchObject({
    secretName: SERVING_SECRET,
    dnsNames: ["usher.hall.svc", "usher.hall", "usher.hall.svc.cluster.local"],
    issuerRef: { name: "usher-ca", kind: "Issuer", group: "cert-manager.io" },
  });
});

test("with an administrator's issuer cert-manager issues only the certificate", () => {
  const issuer = { name: "company", kind: "ClusterIssuer", group: "cert-manager.io" };
  const objects = certificateObjects({
    ...DEFAULT_INSTALLATION,
    certificates: { mode: "CertManager", issuer },
  });
  expect(objects.map((one) => at(one, "spec", "issuerRef"))).toEqual([issuer]);
});

test("the administrator's Secret may have any name", () => {
  const all = installed({ mode: "Secret", secret: "company-tls" });
  const volumes = listAt(only(all, "Deployment"), "spec", "template", "spec", "volumes");
  expect(volumes).toContainEqual({ name: "certificates", secret: { secretName: "company-tls" } });
});

test("with manageWebhooks: false usher may get its configurations and write none", () => {
  const rules = (more: Partial<Installation>) =>
    installed(undefined, more)
      .objects.flatMap((one) => listAt(one, "rules"))
      .filter((rule) => at(rule, "apiGroups", 0) === "admissionregistration.k8s.io");
  expect(rules({ manageWebhooks: false }).map((rule) => at(rule, "verbs"))).toEqual([["get"]]);
  expect(rules({}).map((rule) => at(rule, "verbs"))).not.toEqual([["get"]]);
});
