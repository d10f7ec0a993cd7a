import type { JsonObject } from "../../core/json.ts";
import { openApiV2, openApiV3 } from "./open-api.ts";
import { REVIEW_KIND, type ReviewApi } from "./review-api.ts";

const JSON_TYPE = "application/json";

/** The content type with which clients request all groups, versions and resources at once. */
const AGGREGATED_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/** A document that can be read with GET. */
interface Document {
  readonly type: string;
  readonly body: string;
}

/** The documents of an API by path and content type. */
export class Documents {
  readonly #byPath: ReadonlyMap<string, string>;
  readonly #aggregated: Document;

  constructor(api: ReviewApi) {
    const { group, version } = api;
    const groupVersion = `${group}/${version}`;
    const listed = { groupVersion, version };
    const apiGroup = { name: group, versions: [listed], preferredVersion: listed };
    const documents: Readonly<Record<string, JsonObject>> = {
      "/apis": { kind: "APIGroupList", apiVersion: "v1", groups: [apiGroup] },
      [`/apis/${group}`]: { kind: "APIGroup", apiVersion: "v1", ...apiGroup },
      [`/apis/${groupVersion}`]: {
        kind: "APIResourceList",
        apiVersion: "v1",
        groupVersion,
        resources: [
          {
            name: api.resource,
            singularName: singularOf(api),
            namespaced: false,
            ...REVIEW_KIND,
            verbs: ["create"],
          },
        ],
      },
      "/openapi/v2": openApiV2(api),
      "/openapi/v3": {
        paths: { [`apis/${groupVersion}`]: { serverRelativeURL: `/openapi/v3/apis/${groupVersion}` } },
      },
      [`/openapi/v3/apis/${groupVersion}`]: openApiV3(api),
    };
    this.#byPath = new Map(Object.entries(documents).map(([path, body]) => [path, JSON.stringify(body)]));
    this.#aggregated = { type: AGGREGATED_TYPE, body: JSON.stringify(aggregatedDiscovery(api)) };
  }

  has(path: string): boolean {
    return this.#byPath.has(path);
  }

  /** `undefined` if the client accepts no form of it. */
  at(path: string, accept: string | undefined): Document | undefined {
    const types = (accept ?? "*/*").toLowerCase().split(",").map(spelled);
    if (path === "/apis" && types.includes(AGGREGATED_TYPE.toLowerCase())) return this.#aggregated;
    const takesJson = types.some((type) => ["*/*", "application/*", JSON_TYPE].includes(type));
    const body = this.#byPath.get(path);
    return takesJson && body !== undefined ? { type: JSON_TYPE, body } : undefined;
  }
}

/** A media type without spaces and without quality parameters. */
function spelled(type: string): string {
  const [name, ...parameters] = type.split(";").map((part) => part.trim());
  return [name, ...parameters.filter((one) => !/^(?:q|charset|profile)=/.test(one))].join(";");
}

function singularOf({ resource }: ReviewApi): string {
  return resource.replace(/s$/, "");
}

function aggregatedDiscovery(api: ReviewApi): JsonObject {
  const resource = {
    resource: api.resource,
    responseKind: REVIEW_KIND,
    scope: "Cluster",
    singularResource: singularOf(api),
    verbs: ["create"],
  };
  const version = { version: api.version, resources: [resource], freshness: "Current" };
  return {
    kind: "APIGroupDiscoveryList",
    apiVersion: "apidiscovery.k8s.io/v2",
    metadata: {},
    items: [{ metadata: { name: api.group, creationTimestamp: null }, versions: [version] }],
  };
}
