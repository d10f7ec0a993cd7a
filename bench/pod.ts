// A pod as an API server sends it for review, with what kubectl never shows: managedFields, the token volume, defaults.
import { NAMESPACE } from "./policies.ts";

/** Same length and shape as the real ones, and the same at every run. */
export function uid(i: number, salt: number): string {
  const digits = ((i + 1) * 2_654_435_761 + salt * 40_503).toString(16).padStart(12, "0").slice(-12);
  return `5f0c7d1e-93ab-4c2d-8e6f-${digits}`;
}

/** A pod of a StatefulSet. Pods with different numbers differ, but not in size. */
export function podObject(i: number, role: string): object {
  const name = `etcd-main-${i}`;
  return {
    kind: "Pod",
    apiVersion: "v1",
    metadata: {
      name,
      generateName: "etcd-main-",
      namespace: NAMESPACE,
      creationTimestamp: null,
      labels: {
        app: "etcd",
        role,
        "app.kubernetes.io/managed-by": "etcd-druid",
        "apps.kubernetes.io/pod-index": String(i),
        "controller-revision-hash": "etcd-main-6d4b75c9f8",
        "statefulset.kubernetes.io/pod-name": name,
      },
      annotations: {
        "checksum/etcd-configmap": "9b0f3c5ae6d7481f2ab35c70d9e1846f5c2b7a8e90d3f1c64b5a7e8d2f0c1b93",
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "2379",
      },
      ownerReferences: [
        {
          apiVersion: "apps/v1",
          kind: "StatefulSet",
          name: "etcd-main",
          uid: uid(i, 4),
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
      managedFields: [managedBy("kube-controller-manager")],
    },
    spec: spec(i, name),
    status: {},
  };
}

/** The largest part of a real pod: which manager set which field. */
function managedBy(manager: string): object {
  const set = {};
  const container = (name: string) => ({
    [`k:{"name":"${name}"}`]: {
      ".": set,
      "f:command": set,
      "f:env": { ".": set, 'k:{"name":"POD_NAME"}': { ".": set, "f:name": set, "f:valueFrom": set } },
      "f:image": set,
      "f:imagePullPolicy": set,
      "f:name": set,
      "f:resources": {
        ".": set,
        "f:limits": { "f:memory": set },
        "f:requests": { "f:cpu": set, "f:memory": set },
      },
      "f:terminationMessagePath": set,
      "f:volumeMounts": { ".": set, 'k:{"mountPath":"/var/etcd/data"}': { ".": set, "f:mountPath": set } },
    },
  });
  return {
    manager,
    operation: "Update",
    apiVersion: "v1",
    time: "2026-11-15T10:20:30Z",
    fieldsType: "FieldsV1",
    fieldsV1: {
      "f:metadata": {
        "f:annotations": { ".": set, "f:checksum/etcd-configmap": set, "f:prometheus.io/scrape": set },
        "f:labels": { ".": set, "f:app": set, "f:role": set, "f:controller-revision-hash": set },
        "f:ownerReferences": { ".": set },
      },
      "f:spec": {
        "f:containers": { ...container("etcd"), ...container("backup-restore") },
        "f:dnsPolicy": set,
        "f:enableServiceLinks": set,
        "f:restartPolicy": set,
        "f:schedulerName": set,
        "f:securityContext": { ".": set, "f:fsGroup": set, "f:runAsUser": set },
        "f:terminationGracePeriodSeconds": set,
      },
    },
  };
}

function spec(i: number, name: string): object {
  return {
    volumes: [
      { name: "etcd-data", persistentVolumeClaim: { claimName: `data-${name}` } },
      { name: "etcd-config", configMap: { name: "etcd-main-config", defaultMode: 420 } },
      { name: "kube-api-access-x7k2p", projected: { sources: TOKEN_SOURCES, defaultMode: 420 } },
    ],
    containers: [container("etcd", i, 2379), container("backup-restore", i, 8080)],
    restartPolicy: "Always",
    terminationGracePeriodSeconds: 30,
    dnsPolicy: "ClusterFirst",
    serviceAccountName: "etcd-main",
    serviceAccount: "etcd-main",
    securityContext: { runAsUser: 65532, runAsGroup: 65532, runAsNonRoot: true, fsGroup: 65532 },
    hostname: name,
    subdomain: "etcd-main-peer",
    schedulerName: "default-scheduler",
    tolerations: ["not-ready", "unreachable"].map((key) => ({
      key: `node.kubernetes.io/${key}`,
      operator: "Exists",
      effect: "NoExecute",
      tolerationSeconds: 300,
    })),
    priority: 0,
    enableServiceLinks: true,
    preemptionPolicy: "PreemptLowerPriority",
  };
}

const TOKEN_SOURCES = [
  { serviceAccountToken: { expirationSeconds: 3607, path: "token" } },
  { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
  {
    downwardAPI: {
      items: [{ path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } }],
    },
  },
];

function container(name: string, i: number, port: number): object {
  const field = (fieldPath: string) => ({ fieldRef: { apiVersion: "v1", fieldPath } });
  return {
    name,
    image: `registry.example.org/etcd/${name}:v3.6.${i}`,
    command: [`/usr/local/bin/${name}`, "--config-file=/etc/etcd/config.yaml", `--initial-index=${i}`],
    ports: [{ name: "client", containerPort: port, protocol: "TCP" }],
    env: [
      { name: "POD_NAME", valueFrom: field("metadata.name") },
      { name: "POD_NAMESPACE", valueFrom: field("metadata.namespace") },
      { name: "ETCD_QUOTA_BACKEND_BYTES", value: "8589934592" },
    ],
    resources: { limits: { memory: "2Gi" }, requests: { cpu: "300m", memory: "1Gi" } },
    volumeMounts: [
      { name: "etcd-data", mountPath: "/var/etcd/data" },
      { name: "etcd-config", readOnly: true, mountPath: "/etc/etcd" },
      {
        name: "kube-api-access-x7k2p",
        readOnly: true,
        mountPath: "/var/run/secrets/kubernetes.io/serviceaccount",
      },
    ],
    livenessProbe: {
      httpGet: { path: "/healthz", port, scheme: "HTTPS" },
      initialDelaySeconds: 15,
      timeoutSeconds: 5,
      periodSeconds: 5,
      successThreshold: 1,
      failureThreshold: 5,
    },
    terminationMessagePath: "/dev/termination-log",
    terminationMessagePolicy: "File",
    imagePullPolicy: "IfNotPresent",
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
  };
}
