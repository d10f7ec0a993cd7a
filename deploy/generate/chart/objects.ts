import type { JsonObject } from "../../../src/core/json.ts";
import { CONFIGURATION_ANNOTATION, CONFIGURATION_FILE } from "../../../src/core/registration/workload.ts";
import { keyOf, registered } from "../installation/registered.ts";
import { switched, type Variant } from "../template/merge.ts";
import { type NodeMap, When } from "../template/node.ts";
import { NAMESPACE, STARTUP_TAINT } from "../template/standing-for.ts";
import { allSwitches, type Switch, together } from "./switches.ts";

/** An object of the chart, and the condition under which it is rendered. */
export interface ChartObject {
  readonly key: string;
  readonly node: NodeMap;
  readonly condition?: string;
}

/** Helm creates the namespace or finds it, installs CRDs apart, and usher itself writes its webhooks. */
const NOT_IN_TEMPLATES = /^(?:Namespace|CustomResourceDefinition|\w+WebhookConfiguration) /;

const NAMES: JsonObject = { modules: { "node-labels": { startupTaint: STARTUP_TAINT } } };

/** Every object that is registered by any setting, each field of it under its condition. */
export async function chartObjects(): Promise<ChartObject[]> {
  const switches = await allSwitches();
  const variants = await Promise.all(
    [[], ...switches.map((one) => [one]), ...pairs(switches)].map(async (some) => ({
      switches: some.map(({ condition }) => condition),
      objects: new Map(
        (await registered(together(NAMES, ...some.map((one) => one.configuration)), NAMESPACE)).map(
          (object) => [keyOf(object), withoutText(object)],
        ),
      ),
    })),
  );
  const keys = new Set(variants.flatMap(({ objects }) => [...objects.keys()]));
  return [...keys]
    .filter((key) => !NOT_IN_TEMPLATES.test(key))
    .map((key) => {
      const all: Variant<JsonObject>[] = variants.map(({ switches: on, objects }) => ({
        switches: on,
        value: objects.get(key),
      }));
      const node = switched(all);
      return node instanceof When
        ? { key, node: node.node as NodeMap, condition: node.condition }
        : { key, node: node as NodeMap };
    });
}

/** The text of the configuration, and what follows from it: the chart has the configuration as a value. */
function withoutText(object: JsonObject): JsonObject {
  const text = JSON.stringify(object, (key, value) => {
    if (key === CONFIGURATION_ANNOTATION) return "";
    return key === CONFIGURATION_FILE ? "" : value;
  });
  return JSON.parse(text) as JsonObject;
}

/** Two settings together may need what neither needs alone. Of one setting no two values can be had. */
function pairs(switches: readonly Switch[]): Switch[][] {
  return switches.flatMap((one, index) =>
    switches.slice(index + 1).flatMap((other) => (one.path === other.path ? [] : [[one, other]])),
  );
}
