// The contents of the image, as CycloneDX JSON: for scanners, and for users who are responsible for what they run.
import { sha256 } from "./tar.ts";
import type { Contents } from "./usher.ts";

const SPECIFICATION = "1.6";

/** A name in a package URL. */
function escaped(name: string): string {
  return encodeURIComponent(name).replaceAll("%2F", "/");
}

function npmUrl(name: string, version: string): string {
  return `pkg:npm/${escaped(name)}@${escaped(version)}`;
}

/** An identifier is listed as such, an expression as that; the schema separates them. */
function licensed(license: string): object {
  return { licenses: [/^[\w.+-]+$/.test(license) ? { license: { id: license } } : { expression: license }] };
}

export function billOfMaterials({
  manifest,
  architecture,
  debian,
  release,
  node,
  bundle,
  created,
}: Contents): string {
  const own = {
    type: "application",
    "bom-ref": npmUrl(manifest.name, manifest.version),
    name: manifest.name,
    version: manifest.version,
    description: manifest.description,
    purl: npmUrl(manifest.name, manifest.version),
    ...licensed(manifest.license),
  };
  const runtime = {
    type: "platform",
    "bom-ref": npmUrl(node.name, node.version),
    name: "node",
    version: node.version,
    purl: npmUrl(node.name, node.version),
    // The registry's package is a wrapper; vulnerabilities are filed under this name.
    cpe: `cpe:2.3:a:nodejs:node.js:${node.version}:*:*:*:*:*:*:*`,
    hashes: [
      { alg: "SHA-512", content: Buffer.from(node.integrity.split("-")[1] ?? "", "base64").toString("hex") },
    ],
    ...licensed("MIT"),
  };
  const system = debian.map((one) => {
    const purl = `pkg:deb/debian/${escaped(one.name)}@${escaped(one.version)}?arch=${one.architecture}&distro=${release}`;
    return {
      type: "library",
      "bom-ref": purl,
      name: one.name,
      version: one.version,
      purl,
      hashes: [{ alg: "SHA-256", content: one.sha256 }],
    };
  });
  const bundled = bundle.packages.map(({ name, version, license }) => ({
    type: "library",
    "bom-ref": npmUrl(name, version),
    name,
    version,
    purl: npmUrl(name, version),
    ...licensed(license),
  }));
  const components = [runtime, ...system, ...bundled];
  const bill = {
    bomFormat: "CycloneDX",
    specVersion: SPECIFICATION,
    version: 1,
    metadata: {
      timestamp: created.toISOString(),
      component: own,
      properties: [{ name: "usher:platform", value: `linux/${architecture}` }],
    },
    components,
    dependencies: [{ ref: own["bom-ref"], dependsOn: components.map((one) => one["bom-ref"]) }],
  };
  return `${JSON.stringify({ ...bill, serialNumber: serialNumber(bill) }, undefined, 2)}\n`;
}

/** Of the content: another bill has another number, and the same one the same. */
function serialNumber(bill: object): string {
  const hash = sha256(JSON.stringify(bill));
  const parts = [
    hash.slice(0, 8),
    hash.slice(8, 12),
    `8${hash.slice(13, 16)}`,
    `8${hash.slice(17, 20)}`,
    hash.slice(20, 32),
  ];
  return `urn:uuid:${parts.join("-")}`;
}
