// The parts of the test control plane, and how each is built. The versions are in `build/*/go.mod`, where Go's own
// checksums pin all dependencies; this file has only what a go.mod can't express.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const BUILD_FOLDER = join(import.meta.dirname, "..", "build");

export const BINARIES = [
  "etcd",
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  "kubectl",
  "kwok",
] as const;
export type BinaryName = (typeof BINARIES)[number];

export interface Recipe {
  readonly name: string;
  /** Folder under `build` with the go.mod to build from. */
  readonly module: string;
  /** Folder under `build` with the program, where one source is built with the requirements of several modules. @default module */
  readonly program?: string;
  readonly tags?: string;
  /** The Go package that holds `main`. */
  readonly source: string;
  /** The required module whose version is this binary's version. */
  readonly versionOf: string;
  /** How long a build from nothing took on two cores; only shown to the user. */
  readonly usualSeconds: number;
}

/** Older releases of Kubernetes that a control plane can run; their modules are `build/kubernetes-1.33` and so on. */
export const OLDER_RELEASES = ["1.33", "1.34", "1.35", "1.36"] as const;

/** A control plane of a release. kubectl stays the newest: it belongs to the user, not to the cluster. @default the newest */
export function recipesFor(release = ""): readonly Recipe[] {
  const older: readonly string[] = OLDER_RELEASES;
  if (release !== "" && !older.includes(release))
    throw new Error(`there is no build of Kubernetes ${release}; older releases: ${older.join(", ")}`);
  const module = release === "" ? "kubernetes" : `kubernetes-${release}`;
  return [
    recipe("etcd", "etcd", "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3", 60),
    kubernetes("kube-apiserver", 400, module),
    kubernetes("kube-controller-manager", 130, module),
    kubernetes("kube-scheduler", 20, module),
    kubernetes("kubectl", 40),
    recipe("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", "sigs.k8s.io/kwok", 90),
  ];
}

/** The oracle of core/scheduling: the filters of a release's scheduler over a snapshot. @default the newest */
export function schedulerOracle(release = ""): Recipe {
  const { module } = recipesFor(release).find(({ name }) => name === "kube-scheduler") as Recipe;
  const oracle = recipe("scheduler-oracle", module, ".", "k8s.io/kubernetes", 60);
  const before = release === "1.33" || release === "1.34";
  return { ...oracle, program: "scheduler-oracle", ...(before ? { tags: "before_1_35" } : {}) };
}

export const RECIPES: readonly Recipe[] = recipesFor();

/** Tools that single tests need beside the control plane, by the name that tests use; built on demand. */
export const TOOLS = {
  helm: recipe("helm", "helm", "helm.sh/helm/v4/cmd/helm", "helm.sh/helm/v4", 140),
  helm3: recipe("helm3", "helm3", "helm.sh/helm/v3/cmd/helm", "helm.sh/helm/v3", 140),
  kustomize: recipe(
    "kustomize",
    "kustomize",
    "sigs.k8s.io/kustomize/kustomize/v5",
    "sigs.k8s.io/kustomize/kustomize/v5",
    40,
  ),
  "cert-manager": recipe("cert-manager", "cert-manager", ".", "github.com/cert-manager/cert-manager", 300),
  "argo-diff": recipe("argo-diff", "argo-diff", ".", "github.com/argoproj/argo-cd/gitops-engine", 150),
  "flux-diff": recipe("flux-diff", "flux-diff", ".", "github.com/fluxcd/pkg/ssa", 60),
  olm: recipe("olm", "olm", ".", "github.com/operator-framework/operator-registry", 120),
  gardener: recipe("gardener", "gardener", ".", "github.com/gardener/gardener", 150),
  actionlint: recipe(
    "actionlint",
    "actionlint",
    "github.com/rhysd/actionlint/cmd/actionlint",
    "github.com/rhysd/actionlint",
    15,
  ),
  krew: recipe("krew", "krew", "sigs.k8s.io/krew/cmd/krew", "sigs.k8s.io/krew", 25),
  promtool: recipe(
    "promtool",
    "promtool",
    "github.com/prometheus/prometheus/cmd/promtool",
    "github.com/prometheus/prometheus",
    200,
  ),
} as const satisfies Readonly<Record<string, Recipe>>;
export type ToolName = keyof typeof TOOLS;

function recipe(
  name: string,
  module: string,
  source: string,
  versionOf: string,
  usualSeconds: number,
): Recipe {
  return { name, module, source, versionOf, usualSeconds };
}

function kubernetes(name: BinaryName, usualSeconds: number, module = "kubernetes"): Recipe {
  return recipe(name, module, `k8s.io/kubernetes/cmd/${name}`, "k8s.io/kubernetes", usualSeconds);
}

/** The files of a module's folder that determine the binary. */
export interface ModuleFiles {
  readonly goMod: string;
  readonly goSum: string;
  /** For a command that is our own program. */
  readonly program?: string;
}

export function readModule(module: string, program = module): ModuleFiles {
  const read = (folder: string, file: string): string =>
    readFileSync(join(BUILD_FOLDER, folder, file), "utf8");
  const files = { goMod: read(module, "go.mod"), goSum: read(module, "go.sum") };
  if (!existsSync(join(BUILD_FOLDER, program, "main.go"))) return files;
  const sources = readdirSync(join(BUILD_FOLDER, program)).filter((file) => file.endsWith(".go"));
  return {
    ...files,
    program: sources
      .sort()
      .map((file) => read(program, file))
      .join("\0"),
  };
}

/** The version at which a go.mod requires a module. */
export function requiredVersion(goMod: string, module: string): string {
  for (const line of goMod.split("\n")) {
    const [path, version] = line
      .trim()
      .replace(/^require\s+/, "")
      .split(/\s+/);
    if (path === module && version !== undefined && /^v\d/.test(version)) return version;
  }
  throw new Error(`go.mod does not require ${module}`);
}

/** Arguments of `go build` except the output. */
export function buildArguments(recipe: Recipe, version: string): readonly string[] {
  const link = ["-s", "-w"];
  if (recipe.versionOf === "k8s.io/kubernetes") {
    // Built from a module, Kubernetes doesn't know its own version and reports v0.0.0, which clients treat as ancient.
    const [major = "", minor = ""] = version.replace(/^v/, "").split(".");
    const values = { gitVersion: version, gitMajor: major, gitMinor: minor };
    for (const [key, value] of Object.entries(values))
      link.push("-X", `k8s.io/component-base/version.${key}=${value}`);
  }
  const { module, program, tags } = recipe;
  const source = program === undefined ? [] : [`-modfile=${join("..", module, "go.mod")}`];
  const tagged = tags === undefined ? [] : ["-tags", tags];
  return ["build", "-mod=readonly", "-trimpath", ...source, ...tagged, "-ldflags", link.join(" ")];
}

/** Where a binary is stored in the cache: another version, other flags or other dependencies use another path. */
export function cachePath(recipe: Recipe, files: ModuleFiles, platform: string): string {
  const version = requiredVersion(files.goMod, recipe.versionOf);
  const hash = createHash("sha256");
  const { goMod, goSum, program } = files;
  for (const part of [
    ...buildArguments(recipe, version),
    goMod,
    goSum,
    ...(program === undefined ? [] : [program]),
  ])
    hash.update(part).update("\0");
  return join(platform, `${recipe.name}-${version}-${hash.digest("hex").slice(0, 12)}`, recipe.name);
}
