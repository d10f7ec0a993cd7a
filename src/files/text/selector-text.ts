import type { JsonObject } from "../../core/json.ts";
import { checkLabelKey, checkLabelValue } from "../../core/kubernetes/names.ts";
import { labelValue, meets, type Requirement } from "../../core/kubernetes/selectors/label-selector.ts";

/** A label selector in the text form of `kubectl get -l`, or an error message. */
export type SelectorText =
  | { readonly matches: (labels: JsonObject | undefined) => boolean }
  | { readonly problem: string };

type Test = (labels: JsonObject | undefined) => boolean;

const REQUIREMENT =
  /\s*(?:(!)\s*([^\s!=<>,()]+)|([^\s!=<>,()]+)\s*(?:(==|=|!=|>|<)\s*([^\s!=<>,()]*)|\s(in|notin)\s*\(([^()]*)\))?)\s*(?:,|$)/y;

/**
 * Parses `app=web,tier in (a, b),!legacy`: equality and sets, and `>` and `<` on integers, as the API server does. An
 * empty text selects everything.
 */
export function parseSelectorText(text: string): SelectorText {
  const tests: Test[] = [];
  REQUIREMENT.lastIndex = 0;
  const trimmed = text.trim();
  let at = 0;
  while (at < trimmed.length) {
    REQUIREMENT.lastIndex = at;
    const found = REQUIREMENT.exec(trimmed);
    if (found === null)
      return { problem: `${quoted(text)} is not a label selector: ${quoted(trimmed.slice(at))}` };
    const test = testOf(found);
    if (typeof test === "string") return { problem: `${quoted(text)} is not a label selector: ${test}` };
    tests.push(test);
    at = REQUIREMENT.lastIndex;
    if (at === trimmed.length && trimmed.endsWith(",")) {
      return { problem: `${quoted(text)} is not a label selector: it ends with a comma` };
    }
  }
  return { matches: (labels) => tests.every((test) => test(labels)) };
}

function testOf([, not, absent, key = "", sign, value = "", word, list = ""]: RegExpExecArray):
  | Test
  | string {
  const wrongKey = checkLabelKey(not === undefined ? key : (absent ?? ""));
  if (wrongKey !== undefined) return wrongKey;
  if (not !== undefined)
    return requirement({ key: absent ?? "", operator: "DoesNotExist", values: new Set() });
  if (sign === ">" || sign === "<") return compare(key, sign, value);
  if (sign === undefined && word === undefined) {
    return requirement({ key, operator: "Exists", values: new Set() });
  }
  const values = word === undefined ? [value] : list.split(",").map((part) => part.trim());
  for (const one of values) {
    const wrong = checkLabelValue(one);
    if (wrong !== undefined) return wrong;
  }
  const operator = sign === "!=" || word === "notin" ? "NotIn" : "In";
  return requirement({ key, operator, values: new Set(values) });
}

function requirement(wanted: Requirement): Test {
  return (labels) => meets(wanted, labelValue(labels, wanted.key));
}

function compare(key: string, sign: string, value: string): Test | string {
  if (!/^[-+]?[0-9]+$/.test(value)) return `${key}${sign} requires an integer`;
  const bound = BigInt(value);
  return (labels) => {
    const label = labelValue(labels, key);
    if (label === undefined || !/^[-+]?[0-9]+$/.test(label)) return false;
    return sign === ">" ? BigInt(label) > bound : BigInt(label) < bound;
  };
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 80));
}
