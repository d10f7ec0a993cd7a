import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { JsonObject } from "../../core/json.ts";
import { checkSubdomain } from "../../core/kubernetes/names.ts";
import type { Kind, Sample } from "../../core/policy/kind.ts";
import { didYouMean } from "../../core/suggest.ts";
import { CONFIGURATION } from "../configuration/configuration.ts";
import { CallError } from "../exit.ts";
import type { Io } from "../io.ts";
import { yamlText } from "../output/yaml.ts";
import { apiVersionsOf, writtenKinds } from "../schema/json-schemas.ts";
import { version } from "../version.ts";
import { CI_SYSTEMS, type CiSystem, ciFile } from "./ci.ts";

export interface InitOptions {
  readonly name?: string;
  readonly directory: string;
  readonly ci?: CiSystem;
}

type Sampled = Kind & { readonly sample: NonNullable<Kind["sample"]> };

/** Writes a first policy, its suite and a CI step. Overwrites nothing: where one file exists, none is written. */
export async function init(given: string | undefined, options: InitOptions, io: Io): Promise<void> {
  const kinds = (await writtenKinds(io.modules)).filter((kind): kind is Sampled => kind.sample !== undefined);
  const names = kinds.map(({ kind }) => kind);
  const ask = asker(io, given === undefined);
  const wanted = given ?? (await ask(`Kind (${names.join(", ")})`, names[0] ?? ""));
  const kind = kinds.find((one) =>
    [one.kind.toLowerCase(), one.singular, one.plural, ...(one.shortNames ?? [])].includes(
      wanted.toLowerCase(),
    ),
  );
  if (kind === undefined)
    throw new CallError(
      `init has no first object of kind ${wanted}; ${didYouMean(wanted, names) ?? `it has ${names.join(", ")}`}`,
    );
  const sample = kind.sample(Date.now());
  const name = options.name ?? (sample.nameIsFixed ? sample.name : await ask("Name", sample.name));
  const wrong = checkSubdomain(name);
  if (wrong !== undefined) throw new CallError(`--name: ${wrong}`);
  if (sample.nameIsFixed && name !== sample.name)
    throw new CallError(`--name ${name}: only the ${kind.kind} named ${sample.name} counts`);
  const ci = options.ci ?? (await ask(`CI (${CI_SYSTEMS.join(", ")})`, "github"));
  if (!CI_SYSTEMS.some((one) => one === ci))
    throw new CallError(`--ci ${ci}: must be one of ${CI_SYSTEMS.join(", ")}`);
  const files = filesOf(kind, sample, name, ci as CiSystem).map((file) => ({
    ...file,
    path: join(options.directory, file.path),
  }));
  const existing = files.filter(({ path }) => existsSync(path));
  if (existing.length > 0)
    throw new CallError(`${existing.map(({ path }) => path).join(", ")}: there already; nothing was written`);
  for (const { path, text } of files) {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text, { flag: "wx" });
    io.stdout.write(`${path}\n`);
  }
  const policies = join(options.directory, "policies");
  io.stderr.write(`Next: ${io.name} lint ${policies} && ${io.name} test ${policies} --mutate\n`);
}

function filesOf(
  kind: Sampled,
  sample: Sample,
  name: string,
  ci: CiSystem,
): { readonly path: string; readonly text: string }[] {
  const { namespace, spec, configuration, objects = [], cases, equivalent = [] } = sample;
  // Of a name that all such kinds share, each has a file of its own.
  const file = sample.nameIsFixed ? kind.singular : name;
  const policy = {
    apiVersion: apiVersionsOf(kind)[0],
    kind: kind.kind,
    metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
    spec,
  };
  const suite = {
    apiVersion: "usher.dev/v1alpha1",
    kind: "TestSuite",
    source: [`${file}.yaml`],
    ...(configuration === undefined ? {} : { config: `${file}.usher.yaml` }),
    ...(objects.length === 0 ? {} : { objects }),
    cases,
    ...(equivalent.length === 0 ? {} : { equivalent }),
  };
  const settings = {
    apiVersion: apiVersionsOf(CONFIGURATION)[0],
    kind: CONFIGURATION.kind,
    spec: configuration,
  };
  const step = ciFile(ci, version());
  return [
    { path: `policies/${file}.yaml`, text: `# ${kind.summary}\n${yamlText(policy)}\n` },
    ...(configuration === undefined
      ? []
      : [
          {
            path: `policies/${file}.usher.yaml`,
            text: `# The settings under which the policy counts: usher install --config\n${yamlText(settings as JsonObject)}\n`,
          },
        ]),
    {
      path: `policies/${file}.suite.yaml`,
      text: `# Cases that the policy decides: usher test policies --mutate\n${yamlText(suite)}\n`,
    },
    ...(step === undefined ? [] : [step]),
  ];
}

/** Asks on a terminal; elsewhere the default counts. An empty answer is the default. */
function asker(io: Io, interactive: boolean): (question: string, standard: string) => Promise<string> {
  const isAsking = interactive && io.stdout.isTTY === true;
  let rest = "";
  const input = io.stdin[Symbol.asyncIterator]();
  return async (question, standard) => {
    if (!isAsking) return standard;
    io.stdout.write(`${question} [${standard}]: `);
    while (!rest.includes("\n")) {
      const next = await input.next();
      if (next.done === true) break;
      rest += Buffer.from(next.value).toString("utf8");
    }
    const [line = "", ...more] = rest.split("\n");
    rest = more.join("\n");
    return line.trim() === "" ? standard : line.trim();
  };
}
