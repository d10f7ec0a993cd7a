/** One test of a JUnit report. */
export interface JunitCase {
  readonly name: string;
  readonly seconds: number;
  /** `failure`: found something. `error`: could not be evaluated. @default passed */
  readonly problem?: { readonly type: "failure" | "error"; readonly message: string; readonly text: string };
  /** Output of a test beside its problem. @default nothing */
  readonly note?: string;
  /** @default that of the suite */
  readonly file?: string;
  readonly line?: number;
}

export interface JunitSuite {
  readonly name: string;
  readonly file: string;
  readonly cases: readonly JunitCase[];
}

/** A report in the form of JUnit, as CI servers read it. */
export function junitText(suites: readonly JunitSuite[]): string {
  const all = suites.flatMap(({ cases }) => cases);
  const lines = [`<?xml version="1.0" encoding="UTF-8"?>`, `<testsuites name="usher"${counts(all)}>`];
  for (const { name, file, cases } of suites) {
    lines.push(`  <testsuite name="${escaped(name)}" file="${escaped(file)}"${counts(cases)}>`);
    for (const one of cases) {
      const line = one.line === undefined ? "" : ` line="${one.line}"`;
      const head = `    <testcase name="${escaped(one.name)}" classname="${escaped(name)}" file="${escaped(one.file ?? file)}"${line} time="${one.seconds.toFixed(3)}"`;
      if (one.problem === undefined && one.note === undefined) {
        lines.push(`${head}/>`);
        continue;
      }
      const { type = "failure", message = "", text = "" } = one.problem ?? {};
      lines.push(
        `${head}>`,
        ...(one.problem === undefined
          ? []
          : [`      <${type} message="${escaped(message)}">${escaped(text)}</${type}>`]),
        ...(one.note === undefined ? [] : [`      <system-out>${escaped(one.note)}</system-out>`]),
        "    </testcase>",
      );
    }
    lines.push("  </testsuite>");
  }
  return [...lines, "</testsuites>"].join("\n");
}

function counts(cases: readonly JunitCase[]): string {
  const count = (type: "failure" | "error") => cases.filter(({ problem }) => problem?.type === type).length;
  const seconds = cases.reduce((sum, one) => sum + one.seconds, 0);
  return ` tests="${cases.length}" failures="${count("failure")}" errors="${count("error")}" time="${seconds.toFixed(3)}"`;
}

/** XML 1.0 has no way to write control characters. */
function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll(
      /[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g,
      "\ufffd",
    );
}
