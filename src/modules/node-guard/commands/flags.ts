/** Flags and arguments, separate from code: declarations load none. */
export interface GrantFlags {
  readonly group?: string;
  readonly mode?: string;
  readonly for?: string;
  readonly reason?: string;
}

export interface RevokeArgs {
  readonly name: string;
}
