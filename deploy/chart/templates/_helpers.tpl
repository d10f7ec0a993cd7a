{{/* The image: a digest stands in place of a tag. */}}
{{- define "usher.image" -}}
{{- $image := .Values.image -}}
{{- $name := $image.repository -}}
{{- if $image.registry -}}{{- $name = printf "%s/%s" (trimSuffix "/" $image.registry) $name -}}{{- end -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $name $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $name ($image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* Labels of an object: (list . own). Those of usher and of Helm can't be replaced by a value. */}}
{{- define "usher.labels" -}}
{{- $root := index . 0 -}}
{{- $own := index . 1 -}}
{{- $common := dict
  "app.kubernetes.io/name" "usher"
  "app.kubernetes.io/instance" $root.Release.Name
  "app.kubernetes.io/managed-by" $root.Release.Service
  "app.kubernetes.io/version" $root.Chart.AppVersion
  "helm.sh/chart" (printf "%s-%s" $root.Chart.Name ($root.Chart.Version | replace "+" "_"))
-}}
{{- toYaml (merge $own $common $root.Values.labels) -}}
{{- end -}}

{{/* Labels of pods: (list . own). No version: pods are replaced when they change, not when the chart does. */}}
{{- define "usher.podLabels" -}}
{{- $root := index . 0 -}}
{{- $own := index . 1 -}}
{{- $common := dict "app.kubernetes.io/name" "usher" "app.kubernetes.io/managed-by" $root.Release.Service -}}
{{- toYaml (merge $own $common $root.Values.podLabels $root.Values.labels) -}}
{{- end -}}

{{/* A map without the fields that a value sets to null: so a default is removed. */}}
{{- define "usher.withoutNulls" -}}
{{- $kept := dict -}}
{{- range $key, $value := . -}}
{{- if not (kindIs "invalid" $value) -}}{{- $_ := set $kept $key $value -}}{{- end -}}
{{- end -}}
{{- toYaml $kept -}}
{{- end -}}

{{/* The UsherConfiguration that the replicas read. */}}
{{- define "usher.configuration" -}}
{{- $spec := merge (dict "namespace" .Release.Namespace) (deepCopy .Values.configuration) -}}
{{- if not .Values.crds.manage -}}{{- $_ := set $spec "manageCrds" false -}}{{- end -}}
{{- if .Values.controlPlaneNodes -}}{{- $_ := set $spec "controlPlaneNodes" true -}}{{- end -}}
{{- if .Values.networkPolicy.enabled -}}
{{- $policy := dict "enabled" true -}}
{{- with .Values.networkPolicy.webhookCidrs -}}{{- $_ := set $policy "webhookCidrs" . -}}{{- end -}}
{{- $_ := set $spec "networkPolicy" $policy -}}
{{- end -}}
{{- dict "apiVersion" "usher.dev/v1alpha1" "kind" "UsherConfiguration" "spec" $spec | toJson -}}
{{- end -}}

{{/* Peers of a NetworkPolicy: a list of networks. */}}
{{- define "usher.ipBlocks" -}}
{{- range . }}
- ipBlock:
    cidr: {{ . | toJson }}
{{- end -}}
{{- end -}}
