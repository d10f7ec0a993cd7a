/** How a pipeline calls usher: by npx, in the version that wrote the step. The documents show the same texts. */
export const CI_SYSTEMS = ["github", "gitlab", "pre-commit", "none"] as const;
export type CiSystem = (typeof CI_SYSTEMS)[number];

/** The file of each system, and its content. */
export function ciFile(
  system: CiSystem,
  version: string,
): { readonly path: string; readonly text: string } | undefined {
  const usher = `npx --yes @usher-dev/usher@${version}`;
  switch (system) {
    case "github":
      return {
        path: ".github/workflows/usher.yml",
        text: `name: usher
on: [pull_request]
permissions:
  contents: read
  security-events: write
jobs:
  policies:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5
      - uses: actions/setup-node@v5
        with: { node-version: 24 }
      - run: ${usher} lint policies -o sarif > usher.sarif
      - if: always()
        uses: github/codeql-action/upload-sarif@v4
        with: { sarif_file: usher.sarif }
      - run: ${usher} test policies
`,
      };
    case "gitlab":
      return {
        path: "usher.gitlab-ci.yml",
        text: `usher:
  image: node:24
  script:
    - ${usher} lint policies
    - ${usher} test policies -o junit > usher.xml
  artifacts:
    when: always
    reports: { junit: usher.xml }
`,
      };
    case "pre-commit":
      return {
        path: ".pre-commit-config.yaml",
        text: `repos:
  - repo: local
    hooks:
      - id: usher-lint
        name: usher lint
        language: system
        entry: ${usher} lint policies
        pass_filenames: false
        files: ^policies/
`,
      };
    default:
      return undefined;
  }
}
