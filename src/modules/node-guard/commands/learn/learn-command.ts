import { z } from "zod";
import { failureOf } from "../../../../core/decision/need.ts";
import { decodeObservations, OBSERVATIONS } from "../../../../core/evaluate/observations.ts";
import { type Json, stringAt } from "../../../../core/json.ts";
import type {
  CommandCall,
  CommandCode,
  CommandReport,
  CommandRun,
  InputText,
} from "../../../../core/module/command.ts";
import { MODULE } from "../../settings.ts";
import { readAuditLog } from "./audit-log.ts";
import { type Proposal, proposalsOf } from "./proposals.ts";

interface Flags {
  readonly auditLog?: InputText;
}

const CHECK_EACH =
  "check each before you add it: a refused attack looks the same; an entry of workloads opens its whole namespace";

/** Entries that would have admitted refused requests. Writes nothing. */
export const learnCode: CommandCode<object, Flags> = {
  shape: z.strictObject({
    entries: z.array(
      z.strictObject({
        group: z.string(),
        list: z.enum(["assigners", "workloads", "exactUsers", "emergencyUsers"]),
        entry: z.string(),
        count: z.int(),
        first: z.string(),
        last: z.string(),
      }),
    ),
  }),
  needsView: ({ flags }) => flags.auditLog === undefined,
  run: (call) => (call.flags.auditLog === undefined ? fromCluster(call) : fromLog(call.flags.auditLog)),
};

function fromLog(file: InputText): CommandReport {
  const { observations, requests, skipped } = readAuditLog(file.text);
  const errors = skipped === 0 ? [] : [`${file.name}: ${skipped} lines are not audit events`];
  return report(proposalsOf(observations), `${requests} refused requests in ${file.name}`, errors);
}

/** The replicas' records, in usher's namespace. */
function* fromCluster({ assembly }: CommandCall): CommandRun {
  const { namespace } = assembly.installation;
  const name = OBSERVATIONS.name(MODULE);
  const [fact] = yield { need: [{ get: { resource: "configmaps", namespace, name }, live: true }] };
  if (fact !== undefined && "found" in fact) {
    const text = stringAt(fact.found, "data", OBSERVATIONS.entry) ?? "";
    return report(proposalsOf(decodeObservations(text)), `ConfigMap ${namespace}/${name}`, []);
  }
  const failure = fact === undefined ? "not read" : failureOf(fact);
  if (failure !== undefined)
    return { ...report([], "", [`ConfigMap ${namespace}/${name}: ${failure}`]), exit: "failed" };
  return report([], `ConfigMap ${namespace}/${name}, which does not exist: nothing was refused yet`, []);
}

function report(entries: readonly Proposal[], from: string, errors: readonly string[]): CommandReport {
  return {
    data: { entries } as unknown as Json,
    table: {
      columns: ["GROUP", "LIST", "ENTRY", "COUNT", "FIRST", "LAST"],
      rows: entries.map(({ group, list, entry, count, first, last }) => [
        group,
        list,
        entry,
        String(count),
        first,
        last,
      ]),
    },
    summary: `${entries.length === 0 ? "no entries" : `${entries.length} ${entries.length === 1 ? "entry" : "entries"}`} to consider, from ${from}`,
    ...(entries.length === 0 ? {} : { notes: [CHECK_EACH] }),
    errors,
    exit: entries.length > 0 ? "found" : "fine",
  };
}
