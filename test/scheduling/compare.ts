// Verdicts of core/scheduling and of the oracle, in a comparable form.
import type { JsonObject } from "../../src/core/json.ts";
import { outcomesOf } from "../../src/core/scheduling/outcomes.ts";
import { feasibleNodes, type NodeVerdict, type PreparedWorld } from "../../src/core/scheduling/scheduling.ts";
import type { OracleAnswer, OracleVerdict } from "./oracle.ts";

/** By node: `fits`, or the plugin with its reasons. */
type Verdicts = Readonly<Record<string, string>>;

export function oracleVerdicts(answer: OracleAnswer["pods"][number], names: readonly string[]): Verdicts {
  const { all, nodes = [] } = answer;
  const verdicts: [string, string][] =
    all === undefined
      ? nodes.map((verdict) => [verdict.node ?? "", describe(verdict)])
      : names.map((name) => [name, describe(all)]);
  return Object.fromEntries(verdicts.sort());
}

function describe({ code, plugin = "", reasons = [] }: OracleVerdict): string {
  if (code === "Success") return "fits";
  if (code === "Error") return "error";
  // The scheduler iterates over a map of resources, so their order is random.
  const resolvable = code === "Unschedulable" ? " (resolvable)" : "";
  return `${plugin}${resolvable}: ${[...reasons].sort().join(", ")}`;
}

export function ownVerdicts(pod: JsonObject, world: PreparedWorld): Verdicts {
  const { outcomes } = outcomesOf(pod, world);
  const { groups } = feasibleNodes(pod, world);
  const verdicts: [string, string][] = [];
  for (const { verdict, nodes } of groups)
    for (const name of nodes) {
      const outcome = outcomes[world.nodes.indexOf(name) ?? -1];
      const resolvable = outcome?.kind === "fails" && outcome.resolvable ? " (resolvable)" : "";
      verdicts.push([name, text(verdict, resolvable)]);
    }
  return Object.fromEntries(verdicts.sort());
}

function text(verdict: NodeVerdict, resolvable: string): string {
  if (verdict.kind === "fits") return "fits";
  if (verdict.kind === "unknown") return `unknown ${verdict.filter}: ${verdict.reason}`;
  return `${verdict.filter}${resolvable}: ${[...verdict.reasons].sort().join(", ")}`;
}
