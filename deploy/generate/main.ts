// `npm run deploy`: writes every generated file. A test fails if one of them is stale. `npm run deploy -- olm` and
// `npm run deploy -- krew` write files of a release, `npm run deploy -- kubernetes-api` the fields of Kubernetes' own
// kinds, for which Go downloads five releases of Kubernetes.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { type GeneratedFile, generatedFiles } from "./generated-files.ts";
import { krewCommand } from "./krew.ts";
import { olmCommand } from "./olm/command.ts";

function write(folder: string, files: readonly GeneratedFile[]): void {
  for (const { path, text } of files) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}

const root = join(import.meta.dirname, "..", "..");
const [command, ...args] = process.argv.slice(2);
if (command === "olm" || command === "krew") {
  try {
    const { folder, files } = command === "olm" ? olmCommand(args) : krewCommand(args);
    write(resolve(folder), files);
  } catch (error) {
    // An invalid request is not a fault of the program: its stack would be useless.
    console.error(error instanceof Error ? error.message : error);
    process.exit(2);
  }
} else if (command === "kubernetes-api") {
  // From the test folder it needs only the lookup of Go modules; everything else is generated without.
  const { kubernetesApiFile } = await import("./kubernetes-api.ts");
  write(root, [kubernetesApiFile()]);
} else write(root, await generatedFiles());
