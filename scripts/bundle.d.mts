export interface Bundle {
  /** Paths in the folder, but for `usher.mjs`. */
  readonly files: readonly string[];
  readonly packages: readonly {
    readonly name: string;
    readonly version: string;
    readonly license: string;
    /** Of the licence; empty where the package has none. */
    readonly text: string;
  }[];
}

export function bundle(outdir: string): Promise<Bundle>;
