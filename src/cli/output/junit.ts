/** One test of a JUnit report. */
export interface JunitCase {
  readonly name: string;
  readonly seconds: number;
  /** `failure`: found something. `error`: could not be judged. @default passed */
  readonly problem?: { readonly type: "failure" | "error"; readonly message: string; readonly text: string };
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
      const head = `    <testcase name="${escaped(one.name)}" classname="${escaped(name)}" file="${escaped(file)}" time="${one.seconds.toFixed(3)}"`;
      if (one.problem === undefined) lines.push(`${head}/>`);
      else {
        const { type, message, text } = one.problem;
        lines.push(
          `${head}>`,
          `      <${type} message="${escaped(message)}">${escaped(text)}</${type}>`,
          "    </testcase>",
        );
      }
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
