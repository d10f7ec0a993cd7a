export function bundlePage(outdir: string): Promise<{
  readonly files: readonly string[];
  /** Of the script and the style. */
  readonly inputs: readonly string[];
}>;
