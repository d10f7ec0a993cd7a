import { freePorts } from "../ports.ts";

export interface Ports {
  readonly etcd: number;
  readonly etcdPeer: number;
  readonly apiserver: number;
  readonly controllers: number;
  readonly scheduler: number;
}

export async function choosePorts(): Promise<Ports> {
  const [etcd = 0, etcdPeer = 0, apiserver = 0, controllers = 0, scheduler = 0] = await freePorts(5);
  return { etcd, etcdPeer, apiserver, controllers, scheduler };
}
