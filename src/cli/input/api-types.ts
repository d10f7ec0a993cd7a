import { z } from "zod";
import { type JsonObject, stringAt } from "../../core/json.ts";
import type { ServerVersion } from "../../core/kubernetes/versions.ts";
import type { Path } from "../../core/path.ts";
import { addSchemaProblems } from "../../core/policy/check-schema.ts";
import type { Problem } from "../../core/policy/problem.ts";
import { ProblemList } from "../../core/policy/problem-list.ts";

/** `kubernetes-api.json`, which `npm run deploy -- kubernetes-api` writes from the OpenAPI of API servers. */
export interface ApiData {
  /** The minor versions of Kubernetes that it has. */
  readonly oldest: number;
  readonly newest: number;
  /** `apps/v1 Deployment` to the name of its type. */
  readonly kinds: Readonly<Record<string, string>>;
  /**
   * The fields of each type. A field is one of these types, a scalar, `a|b`, a list `[]T` or a map `{}T`, and the minor
   * versions that have it, if others have the type without it: `string 34-36`.
   */
  readonly types: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** The fields of Kubernetes' own kinds in one version of the API server. */
export class ApiTypes {
  readonly minor: number;
  readonly #data: ApiData;
  readonly #schemas = new Map<string, z.ZodType>();

  private constructor(data: ApiData, minor: number) {
    this.#data = data;
    this.minor = Math.min(Math.max(minor, data.oldest), data.newest);
  }

  /** Of the nearest known version; by default of the newest. */
  static async load(version: ServerVersion | undefined): Promise<ApiTypes> {
    const { default: data } = await import("./kubernetes-api.json", { with: { type: "json" } });
    return new ApiTypes(data, version?.effective.minor ?? data.newest);
  }

  /** Unknown fields and wrong types; none for an unknown kind. */
  problems(object: JsonObject): Problem[] {
    const kind = `${stringAt(object, "apiVersion") ?? ""} ${stringAt(object, "kind") ?? ""}`;
    const type = Object.hasOwn(this.#data.kinds, kind) ? this.#data.kinds[kind] : undefined;
    if (type === undefined) return [];
    const problems = new ProblemList();
    addSchemaProblems(problems, this.#schema(type), object, []);
    return problems.all([]).map((one) => {
      if (!one.pruned) return one;
      const hint = this.#otherVersion(type, one.path) ?? this.#otherPlace(type, one.path);
      return hint === undefined ? one : { ...one, hint };
    });
  }

  /** Null is absent to the API server. */
  #schema(type: string): z.ZodType {
    return this.#present(type).nullish();
  }

  #present(type: string): z.ZodType {
    if (type.startsWith("[]")) return z.array(this.#schema(type.slice(2)));
    if (type.startsWith("{}")) return z.record(z.string(), this.#schema(type.slice(2)));
    if (type.includes("|")) return z.union(type.split("|").map((one) => this.#present(one)));
    const scalar = SCALARS.get(type);
    if (scalar !== undefined) return scalar;
    let schema = this.#schemas.get(type);
    if (schema === undefined) {
      // Created on demand: most of the 200 types are volume sources.
      schema = z.lazy(() => z.strictObject(Object.fromEntries(this.#shape(type))));
      this.#schemas.set(type, schema);
    }
    return schema;
  }

  *#shape(type: string): Iterable<[string, z.ZodType]> {
    for (const [field, { type: inner, first, last }] of this.#fields(type))
      if (first <= this.minor && this.minor <= last) yield [field, this.#schema(inner)];
  }

  *#fields(type: string): Iterable<[string, { type: string; first: number; last: number }]> {
    const { types, oldest, newest } = this.#data;
    for (const [field, written] of Object.entries(types[type] ?? {})) {
      const [inner = "", range = `${oldest}-${newest}`] = written.split(" ");
      const [first = oldest, last = newest] = range.split("-").map(Number);
      yield [field, { type: inner, first, last }];
    }
  }

  /** If another version has the field. */
  #otherVersion(type: string, path: Path): string | undefined {
    let here = type;
    for (const step of path.slice(0, -1)) {
      if (/^(?:\[\]|\{\})/.test(here)) here = here.slice(2);
      else here = [...this.#fields(here)].find(([field]) => field === step)?.[1].type ?? "";
    }
    const found = [...this.#fields(here)].find(([field]) => field === path.at(-1))?.[1];
    if (found === undefined) return undefined;
    return found.first > this.minor
      ? `Kubernetes has it since 1.${found.first}; this is 1.${this.minor}`
      : `Kubernetes had it until 1.${found.last}; this is 1.${this.minor}`;
  }

  /** Another path of the kind with a field of this name: of several the one that shares most with the written path. */
  #otherPlace(type: string, path: Path): string | undefined {
    const written = path.filter((step) => typeof step === "string");
    let best: { readonly shared: number; readonly place: string } | undefined;
    for (const place of this.#placesOf(written.at(-1) ?? "", type, [])) {
      const different = place.findIndex((step, i) => step !== written[i]);
      if (best === undefined || different > best.shared)
        best = { shared: different, place: place.join(".").replace(/(ontainers)\./, "$1[].") };
    }
    return best === undefined ? undefined : `did you mean ${best.place}?`;
  }

  /** Only in metadata, specs and containers: deeper fields, such as `name`, have many places. */
  *#placesOf(wanted: string, type: string, above: readonly string[]): Iterable<readonly string[]> {
    const fields = [...this.#fields(type)];
    if (above.length > 0 && fields.some(([field]) => field === wanted)) yield [...above, wanted];
    for (const [field, { type: inner }] of fields)
      if (STRUCTURE.test(inner)) yield* this.#placesOf(wanted, inner.replace("[]", ""), [...above, field]);
  }
}

const STRUCTURE = /^(?:ObjectMeta|\w*Spec|\[\]Container)$/;

const SCALARS: ReadonlyMap<string, z.ZodType> = new Map<string, z.ZodType>([
  ["any", z.unknown()],
  ["boolean", z.boolean()],
  ["int32", z.int32()],
  ["int64", z.int()],
  ["number", z.number()],
  ["string", z.string()],
]);
