import {
  type AdmissionOptions,
  type AdmissionServer,
  startAdmission,
} from "../../../src/admission/admission-server.ts";
import { SILENT } from "../../../src/core/log.ts";
import { testSource } from "./example-cluster.ts";

/** For tests: an admission server without logs, on free ports, in front of a test cluster. */
export function startTestServer(options: Partial<AdmissionOptions> = {}): Promise<AdmissionServer> {
  return startAdmission({ source: testSource(), log: SILENT, port: 0, opsPort: 0, ...options });
}
