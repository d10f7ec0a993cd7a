import type { Module } from "./module.ts";

/**
 * A separate program that answers some hooks of a module by a file, beside usher or without it. It is usher's program,
 * called by another name.
 */
export interface Operand {
  /** The last part of the path that it is called by, and the name of its Lease. */
  readonly name: string;
  readonly summary: string;
  /** The file that it is called with, as the help shows it. */
  readonly configurationFile: string;
  readonly namespace: string;
  readonly port: number;
  /** Of health and metrics. */
  readonly opsPort: number;
  /** Contains tls.crt and tls.key. */
  readonly certificateFolder: string;
  /** The Service and the ValidatingWebhookConfiguration by which API servers call it. */
  readonly service: string;
  readonly webhook: string;
  /** The Secret with the tokens of its webhook's path. */
  readonly pathsSecret: string;
  readonly pathsKey: string;
  /** Served if the variable is Aggregated: the resource that accepts reviews, for an API server's front proxy. */
  readonly aggregated: {
    readonly variable: string;
    readonly group: string;
    readonly version: string;
    readonly resource: string;
  };
  /** The module as the operand has it: its one kind is that of the file. */
  readonly load: () => Promise<Module>;
}
