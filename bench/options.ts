// The command line of the bench.
import { parseArgs } from "node:util";

export interface Options {
  readonly json: string | undefined;
  readonly quick: boolean;
  readonly only: readonly string[];
}

function usage(parts: readonly string[]): string {
  return `npm run bench -- [--quick] [--only NAME]… [--json FILE]

  --quick      about a minute; only reports, a missed target is no failure
  --only NAME  one part; may be repeated. Parts: ${parts.join(", ")}
  --json FILE  writes all figures

Without --quick it takes about ten minutes, and ends with code 1 where a target is missed or can't be judged.
Leave the machine alone meanwhile.
`;
}

/** The options, or a text to print instead of measuring, with the code to end with. */
export function optionsOf(
  args: readonly string[],
  parts: readonly string[],
): Options | { readonly text: string; readonly code: number } {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        json: { type: "string" },
        quick: { type: "boolean", default: false },
        only: { type: "string", multiple: true, default: [] },
        help: { type: "boolean", short: "h", default: false },
      },
    });
    const unknown = values.only.find((name) => !parts.includes(name));
    if (unknown !== undefined) return { text: `there is no part ${unknown}\n\n${usage(parts)}`, code: 2 };
    return values.help
      ? { text: usage(parts), code: 0 }
      : { json: values.json, quick: values.quick, only: values.only };
  } catch (error) {
    return { text: `${error instanceof Error ? error.message : String(error)}\n\n${usage(parts)}`, code: 2 };
  }
}
