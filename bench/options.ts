// The command line of the bench.
import { parseArgs } from "node:util";

export interface Options {
  readonly json: string | undefined;
  readonly quick: boolean;
  readonly cluster: boolean;
  readonly rivals: boolean;
  readonly only: readonly string[];
}

/** Names of what can be measured. */
export interface Parts {
  readonly alone: readonly string[];
  readonly cluster: readonly string[];
  readonly rivals: readonly string[];
}

function usage({ alone, cluster, rivals }: Parts): string {
  return `npm run bench -- [--cluster|--rivals] [--quick] [--only NAME]… [--json FILE]

  --cluster    on a real control plane instead, started for it; needs Go, or a cache that has been filled before
  --rivals     usher beside in-tree policies, kyverno and gatekeeper on a real control plane: forty minutes, and the first
               time as long again to build them; needs Go
  --quick      a minute, with --cluster three; only reports, a missed target is no failure
  --only NAME  one part; may be repeated. Parts: ${alone.join(", ")}; with --cluster: ${cluster.join(", ")};
               with --rivals: ${rivals.join(", ")}
  --json FILE  writes all figures

Without --quick it takes about ten minutes, and ends with code 1 where a target is missed or can't be judged.
Leave the machine alone meanwhile.
`;
}

/** The options, or a text to print instead of measuring, with the code to end with. */
export function optionsOf(
  args: readonly string[],
  parts: Parts,
): Options | { readonly text: string; readonly code: number } {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        json: { type: "string" },
        cluster: { type: "boolean", default: false },
        rivals: { type: "boolean", default: false },
        quick: { type: "boolean", default: false },
        only: { type: "string", multiple: true, default: [] },
        help: { type: "boolean", short: "h", default: false },
      },
    });
    const { json, quick, cluster, rivals, only } = values;
    const known = rivals ? parts.rivals : cluster ? parts.cluster : parts.alone;
    const unknown = only.find((name) => !known.includes(name));
    if (unknown !== undefined) {
      const where = rivals ? "with --rivals" : cluster ? "with --cluster" : "without --cluster";
      return { text: `there is no part ${unknown} ${where}\n\n${usage(parts)}`, code: 2 };
    }
    return values.help ? { text: usage(parts), code: 0 } : { json, quick, cluster, rivals, only };
  } catch (error) {
    return { text: `${error instanceof Error ? error.message : String(error)}\n\n${usage(parts)}`, code: 2 };
  }
}
