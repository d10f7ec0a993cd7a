import { isObject, type Json, own } from "../../json.ts";
import type { Path } from "../../path.ts";
import { type FieldError, quoted, typeName } from "../field-error.ts";
import { checkLabelKey, checkLabelValue } from "../names.ts";

/** One `{key, operator, values}`, the form that label selectors and node selectors share. */
export interface Expression {
  readonly key: string;
  readonly operator: string;
  readonly values: readonly string[];
}

const FIELDS: ReadonlySet<string> = new Set(["key", "operator", "values"]);

/** The parts of an expression, or `undefined` if they have wrong types. Adds problems to `problems`. */
export function readExpression(
  value: Json | undefined,
  path: Path,
  problems: FieldError[],
): Expression | undefined {
  if (!isObject(value)) {
    problems.push({ path, message: `a requirement must be an object, got ${typeName(value)}` });
    return undefined;
  }
  const key = readText(value, "key", path, problems);
  const operator = readText(value, "operator", path, problems);
  const values = readTexts(own(value, "values"), [...path, "values"], problems);
  if (key === undefined || operator === undefined || values === undefined) return undefined;
  return { key, operator, values };
}

/** Unknown fields of a requirement. Kubernetes drops them, so they do not make it unreadable. */
export function checkExpressionFields(value: Json | undefined, path: Path, problems: FieldError[]): void {
  if (!isObject(value)) return;
  for (const field of Object.keys(value)) {
    if (FIELDS.has(field) || value[field] === undefined) continue;
    const message = `unknown field ${quoted(field)}: a requirement has key, operator and values`;
    problems.push({ path: [...path, field], message });
  }
}

/** Absent counts as empty, as in Go; later checks report that empty is invalid. */
function readText(value: Json, field: string, path: Path, problems: FieldError[]): string | undefined {
  const text = own(value, field) ?? "";
  if (typeof text === "string") return text;
  problems.push({ path: [...path, field], message: `${field} must be a string, got ${typeName(text)}` });
  return undefined;
}

function readTexts(
  values: Json | undefined,
  path: Path,
  problems: FieldError[],
): readonly string[] | undefined {
  if (values === undefined || values === null) return [];
  if (!Array.isArray(values)) {
    problems.push({ path, message: `values must be a list, got ${typeName(values)}` });
    return undefined;
  }
  const texts: string[] = [];
  for (const [i, value] of values.entries()) {
    if (typeof value === "string") texts.push(value);
    else problems.push({ path: [...path, i], message: `a value must be a string, got ${typeName(value)}` });
  }
  return texts.length === values.length ? texts : undefined;
}

/** The syntax of the key and values of a label expression, for any operator. */
export function checkLabelSyntax(expression: Expression, path: Path, problems: FieldError[]): void {
  const wrongKey = checkLabelKey(expression.key);
  if (wrongKey !== undefined) problems.push({ path: [...path, "key"], message: wrongKey });
  for (const [i, value] of expression.values.entries()) {
    const wrongValue = checkLabelValue(value);
    if (wrongValue !== undefined) problems.push({ path: [...path, "values", i], message: wrongValue });
  }
}

/** In and NotIn need something to compare with, Exists and DoesNotExist have nothing to compare with. */
export function checkSetValues(expression: Expression, path: Path, problems: FieldError[]): void {
  const { operator, values } = expression;
  if ((operator === "In" || operator === "NotIn") && values.length === 0) {
    const message = `the operator ${operator} needs at least one value`;
    problems.push({ path: [...path, "values"], message });
  }
  if ((operator === "Exists" || operator === "DoesNotExist") && values.length > 0) {
    problems.push({ path: [...path, "values"], message: `the operator ${operator} takes no values` });
  }
}
