import { beforeAll, expect, test } from "vitest";
import { TestAuthority } from "../../../test/support/operator/authority.ts";
import { TRUST_MS } from "./path-tokens.ts";
import { isSwapDue, type SwapState } from "./swap-plan.ts";

const NAME = "usher.hall.svc";
const now = Date.now();
const DAY_MS = 86_400_000;
const chains: Record<string, string> = {};
const pems: Record<string, string> = {};

beforeAll(async () => {
  for (const name of ["old", "new"]) {
    const authority = await TestAuthority.create(name);
    pems[name] = authority.pem;
    chains[name] = (await authority.sign({ names: [NAME] })).cert;
    chains[`${name} again`] = (await authority.sign({ names: [NAME] })).cert;
    chains[`${name} expired`] = (
      await authority.sign({ names: [NAME], from: now - 3 * DAY_MS, days: 1 })
    ).cert;
  }
});

test.each<[boolean, string, { served?: string; offered?: string; bundles?: string[]; forMs?: number }]>([
  [true, "nothing is published", { bundles: [] }],
  [true, "the published state is unknown", {}],
  [true, "the CA stays", { offered: "old again", bundles: ["old"], forMs: 0 }],
  [true, "the CA stays among others", { offered: "old again", bundles: ["old+new"], forMs: 0 }],
  [false, "the new CA is not published", { bundles: ["old"], forMs: 1e9 }],
  [false, "one configuration does not have it", { bundles: ["old", "old+new"], forMs: 1e9 }],
  [
    false,
    "both are published, and API servers may not know yet",
    { bundles: ["old+new"], forMs: TRUST_MS - 1 },
  ],
  [true, "both are published for long enough", { bundles: ["old+new"], forMs: TRUST_MS }],
  [true, "an injector has replaced the CA", { bundles: ["new"], forMs: 0 }],
  [true, "an injector has replaced one of them", { bundles: ["new", "old+new"], forMs: 0 }],
  [true, "neither is trusted", { bundles: [""], forMs: 0 }],
  [true, "the certificate in use has expired", { served: "old expired", bundles: ["old+new"], forMs: 0 }],
])(
  "serves the new certificate: %s, if %s",
  (due, _, { served = "old", offered = "new", bundles, forMs = 0 }) => {
    const state: SwapState = {
      served: chains[served] ?? "",
      offered: chains[offered] ?? "",
      bundles: bundles?.map((one) =>
        one
          .split("+")
          .map((name) => pems[name] ?? "")
          .join(""),
      ),
      publishedForMs: forMs,
      trustMs: TRUST_MS,
      name: NAME,
      now,
    };
    expect(isSwapDue(state)).toBe(due);
  },
);
