import type { Source } from "../../core/view/source.ts";
import { Health } from "./health.ts";
import { BEAT_EVERY_MS } from "./ops-pages.ts";

/** How often a source that is still being read is looked at. */
const READY_LOOK_MS = 25;

/** Keeps the pulse: says twice a second that the main thread lives, and as soon as it is so that the source was read. */
export function startHeartbeat(source: Source): { readonly pulse: Health; readonly stop: () => void } {
  const pulse = new Health();
  pulse.beat();
  pulse.set("not-draining", true);
  pulse.set("source-read", source.ready);
  const beats = setInterval(() => pulse.beat(), BEAT_EVERY_MS);
  const looks = setInterval(() => {
    pulse.set("source-read", source.ready);
    if (source.ready) clearInterval(looks);
  }, READY_LOOK_MS);
  return {
    pulse,
    stop: () => {
      clearInterval(beats);
      clearInterval(looks);
    },
  };
}
