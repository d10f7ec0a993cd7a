import { readFile } from "node:fs/promises";
import { stringify } from "yaml";
import { registration } from "../core/registration/index.ts";
import { CallError } from "./exit.ts";
import { assembleFor } from "./source.ts";
import { terminal } from "./terminal.ts";

export interface ManifestsOptions {
  readonly service: string;
  readonly caBundle?: string;
  readonly output: "yaml" | "json";
  readonly quiet: boolean;
  readonly config?: string;
  readonly featureGates?: string;
}

/** The Service's port; the container's is the webhook's own. */
const SERVICE_PORT = 443;

/** Prints what an API server must know of this usher. */
export async function manifests(options: ManifestsOptions): Promise<void> {
  const screen = terminal(options);
  const assembly = assembleFor(options);
  const { namespace } = assembly.installation;
  const caBundle = options.caBundle === undefined ? undefined : await authority(options.caBundle);
  const { objects, notes } = registration(assembly, {
    endpoint: { service: { name: options.service, namespace, port: SERVICE_PORT } },
    ...(caBundle === undefined ? {} : { caBundle }),
  });
  for (const note of notes) screen.note(note);
  if (options.output === "json") {
    screen.out(JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }, null, 2));
  } else {
    // Version 1.1, as kubectl reads it, so that a text like "n" is quoted.
    screen.out(
      objects
        .map((object) =>
          stringify(object, { version: "1.1", lineWidth: 0, aliasDuplicateObjects: false }).trimEnd(),
        )
        .join("\n---\n"),
    );
  }
  if (caBundle === undefined)
    screen.note("without --ca-bundle the webhook configurations trust no certificate yet");
}

async function authority(file: string): Promise<string> {
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    throw new CallError(`${file}: can't be read: ${error instanceof Error ? error.message : String(error)}`);
  });
  if (!text.includes("-----BEGIN CERTIFICATE-----")) {
    throw new CallError(`${file}: is no certificate in PEM: it must have a line -----BEGIN CERTIFICATE-----`);
  }
  return Buffer.from(text).toString("base64");
}
