/** What the leader last saw of a group. */
export interface GroupCounts {
  readonly nodes: number;
  readonly violations: number;
}

export interface GuardState {
  /** By group. */
  counts: ReadonlyMap<string, GroupCounts>;
  /** By override: the group that it weakens now. */
  readonly active: Map<string, string>;
}

export function initialState(): GuardState {
  return { counts: new Map(), active: new Map() };
}
