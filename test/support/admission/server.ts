import {
  type AdmissionOptions,
  type AdmissionServer,
  startAdmission,
} from "../../../src/admission/server/admission-server.ts";
import { SILENT } from "../../../src/core/log.ts";
import { testSource } from "./example-cluster.ts";

/** For tests: a silent admission server on free ports, in front of a cluster for tests. */
export function startTestServer(options: Partial<AdmissionOptions> = {}): Promise<AdmissionServer> {
  return startAdmission({ source: testSource(), log: SILENT, port: 0, opsPort: 0, ...options });
}
