/** Kubernetes' MicroTime: six digits after the point. */
export function microTime(ms: number): string {
  return new Date(ms).toISOString().replace(/Z$/, "000Z");
}
