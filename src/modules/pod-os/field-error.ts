import { goJson } from "./go-text.ts";

export type FieldErrorType = "Forbidden" | "Invalid" | "NotSupported" | "Required";

/** An error of API validation. The API server's cause has `FieldValue` before the type as its reason, and this message. */
export interface PodFieldError {
  readonly field: string;
  readonly type: FieldErrorType;
  /** The wrong value; absent if the field itself is wrong. */
  readonly value?: string;
  readonly detail: string;
  /** The error without its field, as the API server prints it. */
  readonly message: string;
}

const TEXTS: Readonly<Record<FieldErrorType, string>> = {
  Forbidden: "Forbidden",
  Invalid: "Invalid value",
  NotSupported: "Unsupported value",
  Required: "Required value",
};

export function forbidden(field: string, detail: string): PodFieldError {
  return { field, type: "Forbidden", detail, message: `${TEXTS.Forbidden}: ${detail}` };
}

export function required(field: string): PodFieldError {
  return { field, type: "Required", detail: "", message: TEXTS.Required };
}

export function notSupported(field: string, value: string, supported: readonly string[]): PodFieldError {
  const detail = `supported values: ${supported.map(goJson).join(", ")}`;
  return {
    field,
    type: "NotSupported",
    value,
    detail,
    message: `${TEXTS.NotSupported}: ${goJson(value)}: ${detail}`,
  };
}

/** `printed` is the value as Go prints a string. */
export function invalid(field: string, value: string, printed: string, detail: string): PodFieldError {
  return { field, type: "Invalid", value, detail, message: `${TEXTS.Invalid}: ${printed}: ${detail}` };
}
