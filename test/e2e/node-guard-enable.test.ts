// node-guard on a real control plane: real identities, the real scheduler, the DaemonSet controller, kubectl debug. One
// cluster for all, because steering is observed for a while and the other tests fit into that time.
import { expect, test } from "vitest";
import { stringAt } from "../../src/core/json.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { attemptTests, commandTests, overrideTests } from "./guarding/attempts.ts";
import { awayTests } from "./guarding/away.ts";
import { guardRows } from "./guarding/rows.ts";
import { informTests, installTests } from "./guarding/scheduler.ts";
import { GuardStage } from "./guarding/stage.ts";
import { steeringTests } from "./guarding/steering.ts";

describeOwnCluster("node-guard", {}, (cluster) => {
  const stage = new GuardStage(cluster);
  installTests(stage, cluster);
  const steering = steeringTests(stage, cluster);

  test.each(guardRows(stage, cluster))("row %s: %s: %i", async (_row, title, expected, attempt) => {
    const { status, body } = await attempt();
    expect(status, JSON.stringify(body)).toBe(expected);
    // A refusal for lack of permission would prove nothing.
    if (status === 403)
      expect(stringAt(body, "message")).toMatch(title.endsWith("NodeRestriction") ? /node/ : /USHER-G/);
  });

  attemptTests(stage, cluster);
  steering.between();
  commandTests(stage);
  steering.end();
  overrideTests(stage, cluster);
  awayTests(stage, cluster);
  informTests(stage, cluster);
});
