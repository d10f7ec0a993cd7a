import { join } from "node:path";
import { expect, test } from "vitest";
import { makeCertificate } from "../../src/admission/tls/certificate.ts";
import { isObject, type Json, listAt, stringAt } from "../../src/core/json.ts";
import { readManifests } from "../../src/files/reader/read-documents.ts";
import { folder, ROOT, usher } from "./usher.ts";

function read(text: string): Json[] {
  const { manifests, problems } = readManifests(text);
  expect(problems).toEqual([]);
  return manifests.map(({ value }) => value);
}

test("yaml and json are equal, and kubectl can apply them in order", async () => {
  const yaml = await usher(["manifests"]);
  const json = await usher(["manifests", "-o", "json"]);
  expect(yaml.code).toBe(0);
  const objects = read(yaml.out);
  expect(read(json.out)).toEqual(objects);
  const kinds = objects.map((one) => stringAt(one, "kind"));
  expect(kinds[0]).toBe("Namespace");
  expect(kinds).toContain("CustomResourceDefinition");
  expect(kinds).toContain("ClusterRole");
  for (const one of objects) {
    expect(stringAt(one, "apiVersion")).toMatch(/^([a-z0-9.]+\/)?v1$/);
    expect(stringAt(one, "metadata", "name")).toMatch(/^[a-z0-9.:-]+$/);
  }
  expect(yaml.err).toBe("");
});

test("manifests do not include objects that usher writes at run time", async () => {
  const objects = read((await usher(["manifests"])).out);
  const all = objects.map((one) => `${stringAt(one, "kind")} ${stringAt(one, "metadata", "name")}`);
  expect(all).toContain("ClusterRole usher-installation");
  expect(all.filter((one) => /Webhook|ValidatingAdmissionPolicy|Secret|Lease|tally/.test(one))).toEqual([]);
});

test("the operator's manifests are printed alone, with one image for it and its operand", async () => {
  const image = "registry.example/usher@sha256:1";
  const objects = read((await usher(["manifests", "--operator", "project-limit", "--image", image])).out);
  const kinds = objects.map((one) => stringAt(one, "kind"));
  expect(kinds.slice(0, 4)).toEqual([
    "Namespace",
    "CustomResourceDefinition",
    "CustomResourceDefinition",
    "ServiceAccount",
  ]);
  // Otherwise OpenShift's default node selector keeps the operand off every control-plane node.
  expect(stringAt(objects[0], "metadata", "annotations", "openshift.io/node-selector")).toBe("");
  const deployment = objects.find((one) => stringAt(one, "kind") === "Deployment");
  const [container] = listAt(deployment, "spec", "template", "spec", "containers");
  expect(container).toMatchObject({ image, args: ["operator", "project-limit"] });
  expect(listAt(container, "env")).toContainEqual({
    name: "RELATED_IMAGE_PROJECT_REQUEST_LIMIT_ADMISSION",
    value: image,
  });
  // An uninstall would delete objects that carry usher's own labels.
  for (const one of objects)
    expect(stringAt(one, "metadata", "labels", "app.kubernetes.io/managed-by")).not.toBe("usher");
});

test("webhook configurations are printed alone, as policies need them", async () => {
  const { ca } = await makeCertificate(["usher.test"]);
  const directory = folder({ "ca.pem": ca });
  const plain = await usher(["manifests", "--webhooks", "--ca-bundle", join(directory, "ca.pem")]);
  expect(plain.err).toMatch(/manageWebhooks: false[\s\S]*without --source/);
  const kinds = read(plain.out).map((one) => stringAt(one, "kind"));
  expect(kinds).toEqual(["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]);
  expect(plain.out).not.toContain("/validate/project-limit");
  const limited = await usher(["manifests", "--webhooks", "--source", join(ROOT, "examples/project-limit")]);
  expect(limited.out).toContain("path: /validate/project-limit");
  // Some depend on the API server's capabilities.
  expect(limited.out).not.toContain("can-be-limited");
  expect(limited.err).toContain("without kubernetesVersion");
  const known = folder({
    "usher.yaml":
      "apiVersion: usher.dev/v1alpha1\nkind: UsherConfiguration\nspec: {kubernetesVersion: '1.37'}\n",
  });
  const source = ["--source", join(ROOT, "examples/project-limit"), "--config", join(known, "usher.yaml")];
  const closed = await usher(["manifests", "--webhooks", ...source]);
  expect(closed.out).toContain("can-be-limited");
  expect(closed.err).not.toContain("kubernetesVersion");
  for (const flags of [
    ["--source", "examples"],
    ["--path-token", "0".repeat(40)],
    ["--ca-bundle", join(directory, "ca.pem")],
  ])
    expect(await usher(["manifests", ...flags])).toMatchObject({
      code: 2,
      err: expect.stringContaining("--webhooks"),
    });
});

test("flags set the namespace and the CA bundle", async () => {
  const { ca } = await makeCertificate(["usher.test"]);
  const directory = folder({
    "ca.pem": ca,
    "config.yaml": "apiVersion: usher.dev/v1alpha1\nkind: UsherConfiguration\nspec: {namespace: doors}\n",
  });
  const args = ["--ca-bundle", join(directory, "ca.pem"), "--config", join(directory, "config.yaml")];
  const { out, err } = await usher(["manifests", "--webhooks", ...args, "-o", "json"]);
  expect(err).toMatch(/manageWebhooks: false/);
  const webhooks = read(out).flatMap((one) => listAt(one, "webhooks"));
  expect(webhooks.length).toBeGreaterThan(1);
  for (const webhook of webhooks) {
    const config = isObject(webhook) ? webhook["clientConfig"] : undefined;
    expect(config).toMatchObject({
      service: { name: "usher", namespace: "doors", port: 443 },
      caBundle: Buffer.from(ca).toString("base64"),
    });
  }
});

test("webhooks refer to the Service of the installation", async () => {
  const print = async (...args: string[]) => read((await usher(["manifests", "-o", "json", ...args])).out);
  const objects = [...(await print()), ...(await print("--webhooks"))];
  const services = objects.filter((one) => stringAt(one, "kind") === "Service");
  const { name, namespace } = (isObject(services[0]) ? services[0]["metadata"] : {}) as Record<string, Json>;
  for (const webhook of objects.flatMap((one) => listAt(one, "webhooks")))
    expect(webhook).toMatchObject({ clientConfig: { service: { name, namespace } } });
  expect(await usher(["manifests", "--service", "front"])).toMatchObject({ code: 2, out: "" });
});

test("with manageWebhooks: false the paths contain a token, which is new unless given", async () => {
  const configuration =
    "apiVersion: usher.dev/v1alpha1\nkind: UsherConfiguration\nspec: {manageWebhooks: false}\n";
  const config = ["--config", join(folder({ "usher.yaml": configuration }), "usher.yaml")];
  const print = async (...args: string[]) => usher(["manifests", "--webhooks", ...config, ...args]);
  const tokens = async (...args: string[]) => {
    const entries = read((await print(...args)).out).flatMap((one) => listAt(one, "webhooks"));
    const paths = entries.map((one) => stringAt(one, "clientConfig", "service", "path") ?? "");
    return [...new Set(paths.map((path) => path.split("/")[1] ?? ""))];
  };
  const [once, again] = [await tokens(), await tokens()];
  expect([...once, ...again]).toEqual([
    expect.stringMatching(/^[0-9a-f]{40}$/),
    expect.stringMatching(/^[0-9a-f]{40}$/),
  ]);
  expect(once).not.toEqual(again);
  expect(await tokens("--path-token", "0".repeat(40))).toEqual(["0".repeat(40)]);
  expect((await print()).err).toContain("--path-token");
  expect(await print("--path-token", "secret")).toMatchObject({
    code: 2,
    err: expect.stringContaining("40 hexadecimal digits"),
  });
});
