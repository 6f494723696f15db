{{- define "flamegate.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "flamegate.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains (include "flamegate.name" .) .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "flamegate.name" .) | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "flamegate.selectorLabels" -}}
app.kubernetes.io/name: {{ include "flamegate.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "flamegate.labels" -}}
{{ include "flamegate.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "flamegate.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "flamegate.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* flamegate.yaml: what the chart decides, then .Values.config. */}}
{{- define "flamegate.config" -}}
listen: 0.0.0.0:4040
admin: 0.0.0.0:4041
data_dir: /data
{{- if .Values.existingSecret }}
keys_file: /run/secrets/flamegate/keys.yaml
{{- else }}
keys_file: /data/keys.yaml
{{- end }}
{{- if eq .Values.store "postgres" }}
hash_key_file: /run/secrets/flamegate/hash.key
samples_file: /run/secrets/flamegate/samples
{{- if .Values.redis.enabled }}
shares_file: /run/secrets/flamegate/shares
{{- end }}
{{- else }}
hash_key_file: /data/hash.key
samples: "sqlite:"
{{- end }}
{{- with .Values.config }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The pod of both workloads. */}}
{{- define "flamegate.pod" -}}
metadata:
  labels:
    {{- include "flamegate.selectorLabels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/config: {{ include "flamegate.config" . | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "flamegate.serviceAccountName" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
  containers:
    - name: flamegate
      image: "{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}"
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      securityContext:
        {{- toYaml .Values.securityContext | nindent 8 }}
      ports:
        - {name: http, containerPort: 4040}
        - {name: metrics, containerPort: 4041}
      {{- with .Values.extraEnv }}
      env:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      startupProbe:
        httpGet: {path: /healthz, port: metrics}
        periodSeconds: 2
        failureThreshold: 60
      readinessProbe:
        httpGet: {path: /readyz, port: metrics}
        periodSeconds: 5
        failureThreshold: 2
      livenessProbe:
        httpGet: {path: /healthz, port: metrics}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      {{- with .Values.lifecycle }}
      lifecycle:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - {name: config, mountPath: /etc/flamegate, readOnly: true}
        - {name: data, mountPath: /data}
        {{- if .Values.existingSecret }}
        - {name: secret, mountPath: /run/secrets/flamegate, readOnly: true}
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "flamegate.fullname" . }}
    {{- if .Values.existingSecret }}
    - name: secret
      secret:
        secretName: {{ .Values.existingSecret }}
        defaultMode: 0440
    {{- end }}
    {{- if or (eq .Values.store "postgres") (not .Values.persistence.enabled) }}
    - name: data
      emptyDir: {}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- range . }}
    -
      {{- toYaml . | nindent 6 }}
      labelSelector:
        matchLabels:
          {{- include "flamegate.selectorLabels" $ | nindent 10 }}
    {{- end }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
