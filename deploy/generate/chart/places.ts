import { OWN_NAMES, VERSION_LABEL } from "../../../src/core/registration/names.ts";
import { CONFIGURATION_FILE } from "../../../src/core/registration/pods/restricted-pod.ts";
import { CONFIGURATION_ANNOTATION } from "../../../src/core/registration/workload.ts";
import { Append, block, isMap, type Node, type NodeMap, scalar, When } from "../template/node.ts";

/** Labels that every object has, with values of a release: `usher.labels` of the chart writes them. */
const COMMON = ["app.kubernetes.io/name", "app.kubernetes.io/managed-by", VERSION_LABEL];

/** An object of the chart with the chart's values in their places. */
export function withValues(object: NodeMap): NodeMap {
  const spec = object["spec"];
  if (object["kind"] === "Pod") return pod(object);
  if (object["kind"] === "NetworkPolicy") return networkPolicy(object);
  const template = isMap(spec) ? spec["template"] : undefined;
  const data = object["data"];
  return {
    ...object,
    metadata: metadata(object["metadata"] as NodeMap, isCalled(object) ? SERVICE_ANNOTATIONS : ANNOTATIONS),
    ...(isMap(data) && CONFIGURATION_FILE in data
      ? { data: { [CONFIGURATION_FILE]: scalar('include "usher.configuration" . | toJson') } }
      : {}),
    ...(isMap(spec) && isMap(template) ? { spec: { ...workload(spec), template: pods(template) } } : {}),
  };
}

/** Whether this is the Service that the API server calls. */
function isCalled({ kind, metadata }: NodeMap): boolean {
  return kind === "Service" && isMap(metadata) && metadata["name"] === OWN_NAMES.service;
}

const ANNOTATIONS = ".Values.annotations";
const SERVICE_ANNOTATIONS = ".Values.webhook.serviceAnnotations .Values.annotations";

function metadata(own: NodeMap, given = ANNOTATIONS): NodeMap {
  const { labels = {}, annotations, ...rest } = own;
  return {
    ...rest,
    labels: block(`include "usher.labels" (list . ${dict(labels)})`),
    annotations:
      annotations === undefined
        ? new When(given, block(`toYaml ${given}`))
        : new When(`merge ${dict(annotations)} ${given}`, block("toYaml ."), "with"),
  };
}

/** The first rule is that of the webhook port. */
function networkPolicy(object: NodeMap): NodeMap {
  const spec = object["spec"] as NodeMap;
  const [webhook, ...others] = spec["ingress"] as readonly NodeMap[];
  const cidrs = ".Values.networkPolicy.webhookCidrs";
  const from = new When(cidrs, block(`include "usher.ipBlocks" ${cidrs}`));
  return {
    ...object,
    metadata: metadata(object["metadata"] as NodeMap),
    spec: { ...spec, ingress: [{ ...webhook, from }, ...others] },
  };
}

/** A pod that no controller has: labels are those of pods. */
function pod(object: NodeMap): NodeMap {
  const { labels = {}, ...rest } = object["metadata"] as NodeMap;
  return {
    ...object,
    metadata: { ...metadata(rest), labels: block(`include "usher.podLabels" (list . ${dict(labels)})`) },
    spec: podSpec(object["spec"] as NodeMap, false),
  };
}

/** Of a Deployment or Job, beside its pods. */
function workload(spec: NodeMap): NodeMap {
  if (!("strategy" in spec)) return spec;
  if (!serves(spec["template"])) return spec;
  return {
    ...spec,
    replicas: new When('not (kindIs "invalid" .Values.replicas)', scalar("int .Values.replicas")),
    // On the host's network a second replica finds the ports in use, so an old one has to stop first.
    strategy: {
      type: "RollingUpdate",
      rollingUpdate: {
        maxUnavailable: scalar("ternary 1 0 .Values.hostNetwork"),
        maxSurge: scalar("ternary 0 1 .Values.hostNetwork"),
      },
    },
  };
}

/** Whether these are the pods that the API server calls. */
function serves(template: Node | undefined): boolean {
  return JSON.stringify(template).includes('"--port=');
}

function pods(template: NodeMap): NodeMap {
  const { labels = {}, annotations = {} } = template["metadata"] as NodeMap;
  return {
    metadata: {
      labels: block(`include "usher.podLabels" (list . ${dict(labels)})`),
      ...podAnnotations(annotations as NodeMap),
    },
    spec: podSpec(template["spec"] as NodeMap, serves(template)),
  };
}

function podAnnotations(own: NodeMap): NodeMap {
  if (!(CONFIGURATION_ANNOTATION in own)) {
    if (Object.keys(own).length > 0) throw new Error("annotations of these pods have no place in the chart");
    return { annotations: new When(".Values.podAnnotations", block("toYaml .Values.podAnnotations")) };
  }
  const hash = `(dict "${CONFIGURATION_ANNOTATION}" (include "usher.configuration" . | sha256sum))`;
  return { annotations: block(`toYaml (merge ${hash} .Values.podAnnotations)`) };
}

function podSpec(spec: NodeMap, serving: boolean): NodeMap {
  const { tolerations = [], topologySpreadConstraints: _spread, priorityClassName: _class, ...rest } = spec;
  return {
    ...rest,
    imagePullSecrets: optional(".Values.image.pullSecrets"),
    securityContext: block('include "usher.withoutNulls" .Values.podSecurityContext'),
    priorityClassName: new When(".Values.priorityClassName", scalar(".Values.priorityClassName | toJson")),
    ...(serving
      ? {
          hostNetwork: new When(".Values.hostNetwork", true),
          dnsPolicy: new When(".Values.hostNetwork", "ClusterFirstWithHostNet"),
          topologySpreadConstraints: optional(".Values.topologySpreadConstraints"),
        }
      : {}),
    nodeSelector: nodeSelector(spec["nodeSelector"]),
    affinity: affinity(spec["affinity"]),
    tolerations: [...items(tolerations), new Append(".Values.tolerations")],
    containers: (spec["containers"] as readonly NodeMap[]).map((one) => container(one, serving)),
    ...(spec["volumes"] === undefined
      ? {}
      : { volumes: [...(spec["volumes"] as readonly Node[]), new Append(".Values.extraVolumes")] }),
  };
}

/** Of a list that is there under a condition, each item under that condition. */
function items(list: Node): readonly Node[] {
  return list instanceof When
    ? items(list.node).map((item) => new When(list.condition, item))
    : (list as readonly Node[]);
}

/** Beside the labels that the value names. */
function nodeSelector(own: Node | undefined): Node {
  if (own === undefined) return optional(".Values.nodeSelector");
  return new When(`merge (deepCopy .Values.nodeSelector) ${dict(own)}`, block("toYaml ."), "with");
}

/** The pods' own affinity counts if the value sets no affinity of that kind. */
function affinity(own: Node | undefined): Node {
  if (own === undefined) return optional(".Values.affinity");
  return block(`toYaml (merge (deepCopy .Values.affinity) (fromJson \`${JSON.stringify(own)}\`))`);
}

function container(own: NodeMap, serving: boolean): NodeMap {
  const { name = null, image: _image, args = [], ports, volumeMounts = [], env = [], ...rest } = own;
  return {
    name,
    image: scalar('include "usher.image" . | toJson'),
    imagePullPolicy: new When(".Values.image.pullPolicy", scalar(".Values.image.pullPolicy")),
    args: [
      ...(args as readonly Node[]).map(portArgument),
      ...(serving ? [new Append(".Values.extraArgs")] : []),
    ],
    env: [...(env as readonly Node[]), new Append(".Values.extraEnv")],
    ...(ports === undefined ? {} : { ports: (ports as readonly NodeMap[]).map(containerPort) }),
    ...rest,
    resources: optional(
      (args as readonly Node[])[0] === "watchdog" ? ".Values.watchdog.resources" : ".Values.resources",
    ),
    securityContext: block('include "usher.withoutNulls" .Values.securityContext'),
    volumeMounts: [...(volumeMounts as readonly Node[]), new Append(".Values.extraVolumeMounts")],
  };
}

/** The value that has the number of a port, by its name and by the flag that sets it. */
const PORTS = [
  { name: "https", flag: "--port=", value: ".Values.webhook.port" },
  { name: "ops", flag: "--ops-port=", value: ".Values.ops.port" },
];

function portArgument(argument: Node): Node {
  const port = PORTS.find(({ flag }) => typeof argument === "string" && argument.startsWith(flag));
  return port === undefined ? argument : scalar(`printf "${port.flag}%d" (int ${port.value}) | toJson`);
}

function containerPort(port: NodeMap): NodeMap {
  const value = PORTS.find(({ name }) => name === port["name"])?.value;
  if (value === undefined) throw new Error(`no value of the chart has the number of port ${port["name"]}`);
  return { ...port, containerPort: scalar(`int ${value}`) };
}

function optional(value: string): When {
  return new When(value, block(`toYaml ${value}`));
}

/** The expression of a map of texts, without the labels that every object has. */
function dict(texts: Node): string {
  if (texts instanceof When) return `(ternary ${dict(texts.node)} (dict) (${texts.condition}))`;
  const own = Object.entries(texts as NodeMap).filter(([key]) => !COMMON.includes(key));
  return own.length === 0 ? "(dict)" : `(dict ${own.flat().map(text).join(" ")})`;
}

function text(value: Node): string {
  if (typeof value !== "string") throw new Error(`not a text: ${JSON.stringify(value)}`);
  return JSON.stringify(value);
}
