import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { reasonOf } from "../../files/reader/bytes.ts";
import { type InstallationOptions, installationObjects } from "../configuration/installation.ts";
import { CallError } from "../exit.ts";
import type { Io } from "../io.ts";
import { terminal } from "../output/terminal.ts";
import { yamlDocuments } from "../output/yaml.ts";

export interface ManifestsOptions extends InstallationOptions {
  readonly caBundle?: string;
  readonly output: "yaml" | "json";
  readonly quiet?: boolean;
}

/** Prints every object of an installation. */
export async function manifests(options: ManifestsOptions, io: Io): Promise<void> {
  const screen = terminal(io, options);
  const caBundle =
    options.caBundle === undefined
      ? undefined
      : Buffer.from(await authorityFrom(options.caBundle, "--ca-bundle")).toString("base64");
  const { objects, notes } = await installationObjects(
    options,
    io,
    caBundle === undefined ? {} : { caBundle },
  );
  for (const note of notes) screen.note(note);
  screen.out(
    options.output === "json"
      ? JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }, null, 2)
      : yamlDocuments(objects),
  );
  if (caBundle === undefined) {
    screen.note(
      "without --ca-bundle, webhook configurations have no CA bundle until usher runs and adds its own",
    );
  }
}

/** A certificate authority from a file, checked early: an invalid one would only show as failed connections. */
export async function authorityFrom(file: string, flag: string): Promise<string> {
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    throw new CallError(`${flag} ${file}: ${reasonOf(error)}`);
  });
  try {
    new X509Certificate(text);
  } catch {
    throw new CallError(`${flag} ${file}: not a PEM certificate`);
  }
  return text;
}
