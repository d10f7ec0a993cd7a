// Maps addresses of the cluster to local ports. This machine does not route cluster IPs, so every address that the API
// server may dial is looked up in this table.
export type Target = number;

/** `10.96.3.4:443`, the form of a CONNECT request. */
export function address(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

export class Routes {
  /** Address to a local port. */
  readonly #ports = new Map<string, Target>();
  /** Address of a Service to the addresses behind it. */
  readonly #services = new Map<string, readonly string[]>();
  readonly #turns = new Map<string, number>();

  set(from: string, port: Target): void {
    this.#ports.set(from, port);
  }

  delete(from: string): void {
    this.#ports.delete(from);
  }

  /** All Services with their ready addresses, as kube-proxy would program them. */
  setServices(services: ReadonlyMap<string, readonly string[]>): void {
    this.#services.clear();
    for (const [from, targets] of services) this.#services.set(from, targets);
  }

  /** The local port for a connection; calls to a Service take its addresses in turn. */
  resolve(from: string): Target | undefined {
    const direct = this.#ports.get(from);
    if (direct !== undefined) return direct;
    const ports = (this.#services.get(from) ?? []).flatMap((behind) => this.#ports.get(behind) ?? []);
    if (ports.length === 0) return undefined;
    const turn = this.#turns.get(from) ?? 0;
    this.#turns.set(from, turn + 1);
    return ports[turn % ports.length];
  }

  entries(): readonly (readonly [string, Target])[] {
    return [...this.#ports];
  }
}
