import { schemaFiles } from "../../src/cli/schema/json-schemas.ts";
import { allModules } from "../../src/modules/all.ts";
import { declarations } from "../../src/modules/index.ts";
import { chartFiles } from "./chart/files.ts";
import { installationFiles } from "./installation/files.ts";
import { gardenerFiles } from "./installation/gardener.ts";
import { observabilityFiles } from "./observability/files.ts";
import { checkedInOlmFiles } from "./olm/files.ts";
import { rightsTable } from "./rights-table.ts";

/** A file that follows from the code, by its path in the repository. */
export interface GeneratedFile {
  readonly path: string;
  readonly text: string;
}

/** Every file that follows from the code. */
export async function generatedFiles(): Promise<GeneratedFile[]> {
  return [
    ...(await chartFiles()),
    ...(await installationFiles()),
    ...gardenerFiles(),
    ...observabilityFiles(),
    ...checkedInOlmFiles(),
    ...(await schemas()),
    { path: "docs/rights.md", text: rightsTable(allModules) },
  ];
}

/** JSON Schemas of the kinds, for editors, and of what commands print. */
async function schemas(): Promise<GeneratedFile[]> {
  const files = Object.entries(await schemaFiles(declarations));
  return files.map(([name, schema]) => ({
    path: `schemas/${name}`,
    text: `${JSON.stringify(schema, null, 2)}\n`,
  }));
}
