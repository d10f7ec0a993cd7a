import type { ProjectLimits } from "../policy/policy.ts";
import type { LimitSubject } from "./subject.ts";

/** A creation that a maximum applies to: all that is left is to count. */
export interface Creation {
  readonly limits: ProjectLimits;
  /** Whose projects are counted. */
  readonly subject: LimitSubject;
  /** Whom the project is for. */
  readonly username: string;
  /** The name of the new project. */
  readonly project: string;
  readonly max: number;
  /** `limits[2]`, `maxProjectsForSystemUsers` */
  readonly rule: string;
}
