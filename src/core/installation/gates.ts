import { didYouMean } from "../suggest.ts";

/** A feature that can be switched, declared by the module that has it. */
export interface Gate {
  /** CamelCase, as Kubernetes names its gates. */
  readonly name: string;
  readonly stage: "alpha" | "beta" | "stable";
  readonly default: boolean;
  readonly summary: string;
}

export class Gates {
  readonly #state: ReadonlyMap<string, boolean>;

  constructor(declared: readonly Gate[], chosen: ReadonlyMap<string, boolean> = new Map()) {
    this.#state = new Map(declared.map((gate) => [gate.name, chosen.get(gate.name) ?? gate.default]));
  }

  /** Of all declared gates. */
  get state(): Record<string, boolean> {
    return Object.fromEntries(this.#state);
  }

  /** An undeclared gate is off. */
  enabled(name: string): boolean {
    return this.#state.get(name) ?? false;
  }
}

/** Reads `A=true,B=false`. Reports all errors together. */
export function parseGates(
  text: string,
  declared: readonly Gate[],
): { readonly gates: Gates; readonly problems: string[] } {
  const chosen = new Map<string, boolean>();
  const problems: string[] = [];
  const names = declared.map((gate) => gate.name);
  for (const part of text.split(",")) {
    const item = part.trim();
    if (item === "") continue;
    const [, name = "", value] = /^([^=]*)(?:=(.*))?$/.exec(item) ?? [];
    if (!names.includes(name)) {
      const hint = didYouMean(name, names);
      problems.push(
        `feature gate "${name}" is not known${hint === undefined ? `; there ${names.length === 0 ? "are none" : `are: ${names.join(", ")}`}` : `; ${hint}`}`,
      );
    } else if (value !== "true" && value !== "false") {
      problems.push(`feature gate ${name}: write ${name}=true or ${name}=false`);
    } else chosen.set(name, value === "true");
  }
  return { gates: new Gates(declared, chosen), problems };
}
