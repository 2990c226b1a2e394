{{- define "name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "labels" -}}
{{ include "selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "image" -}}
{{- with .Values.image }}{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}{{ end }}
{{- end }}

{{/* Settings of a pod, of values and `secrets`, a list of names. */}}
{{- define "environment" -}}
env:
  - name: PORT
    value: "9300"
  - name: TEMPORAL_ADDRESS
    value: {{ required "temporal.address is needed: host:port of Temporal's frontend" .Values.temporal.address | quote }}
  - name: TEMPORAL_NAMESPACE
    value: {{ .Values.temporal.namespace | quote }}
  - name: TEMPORAL_TASK_QUEUE
    value: {{ .Values.temporal.taskQueue | quote }}
  - name: TRUSTED_PROXIES
    value: {{ .Values.trustedProxies | quote }}
  {{- if .Values.metrics.port }}
  - name: METRICS_PORT
    value: {{ .Values.metrics.port | quote }}
  {{- end }}
  {{- if .Values.migration.enabled }}
  - name: MIGRATE_ON_START
    value: "false"
  {{- end }}
  {{- if .Values.certificates.ca }}
  - name: NODE_EXTRA_CA_CERTS
    value: /certificates/{{ .Values.certificates.ca }}
  {{- end }}
  {{- range $name, $value := .Values.config }}
  - name: {{ $name }}
    value: {{ $value | quote }}
  {{- end }}
  {{- with .Values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
envFrom:
  {{- range .secrets }}
  - secretRef:
      name: {{ . }}
  {{- end }}
{{- end }}

{{/* What every pod of the chart has: nobody's rights, and nothing to write to but /tmp. */}}
{{- define "podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  # The image's compiled code is read by this user.
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: tmp
    emptyDir:
      sizeLimit: {{ .Values.tmp.sizeLimit }}
  {{- if .Values.certificates.secret }}
  - name: certificates
    secret:
      secretName: {{ .Values.certificates.secret }}
  {{- end }}
{{- end }}

{{- define "containerSecurity" -}}
image: {{ include "image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
volumeMounts:
  - name: tmp
    mountPath: /tmp
  {{- if .Values.certificates.secret }}
  - name: certificates
    mountPath: /certificates
    readOnly: true
  {{- end }}
{{- end }}

{{/* A Deployment: of `role` (service, api or worker), with its command, replicas, resources and probes. */}}
{{- define "deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "name" . }}{{ if eq .role "worker" }}-worker{{ end }}
  labels:
    {{- include "labels" . | nindent 4 }}
    app.kubernetes.io/component: {{ .role }}
spec:
  {{- if not .isScaled }}
  replicas: {{ .replicas }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "selector" . | nindent 6 }}
      app.kubernetes.io/component: {{ .role }}
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxSurge: 1
      maxUnavailable: 0
  template:
    metadata:
      labels:
        {{- include "labels" . | nindent 8 }}
        app.kubernetes.io/component: {{ .role }}
        {{- with .Values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations:
        {{- if and .Values.metrics.port .Values.metrics.annotate }}
        prometheus.io/scrape: "true"
        prometheus.io/path: /metrics
        prometheus.io/port: {{ .Values.metrics.port | quote }}
        {{- end }}
        {{- with .Values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      {{- include "podSecurity" . | nindent 6 }}
      terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
      {{- with .Values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "selector" . | nindent 14 }}
              app.kubernetes.io/component: {{ .role }}
      {{- with .Values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ .role }}
          {{- include "containerSecurity" . | nindent 10 }}
          command: ["node", {{ .entry | quote }}]
          {{- include "environment" (merge (dict "secrets" .Values.secrets) .) | nindent 10 }}
          {{- if or .isHttp .Values.metrics.port }}
          ports:
            {{- if .isHttp }}
            - name: http
              containerPort: 9300
            {{- end }}
            {{- if .Values.metrics.port }}
            - name: metrics
              containerPort: {{ .Values.metrics.port }}
            {{- end }}
          {{- end }}
          resources:
            {{- toYaml .resources | nindent 12 }}
          {{- if .isHttp }}
          {{- include "httpProbes" . | nindent 10 }}
          # Until the load balancers know that the pod goes, it takes requests.
          lifecycle:
            preStop:
              exec:
                command: ["sleep", "5"]
          {{- else if .Values.metrics.port }}
          {{- include "workerProbes" . | nindent 10 }}
          {{- end }}
{{- end }}

{{- define "httpProbes" -}}
{{ include "probesOf" (dict "migration" .Values.migration "port" "http") }}
readinessProbe:
  httpGet: { path: /health/ready, port: http }
  periodSeconds: 7
  timeoutSeconds: 7
  failureThreshold: 3
{{- end }}

{{- define "workerProbes" -}}
{{ include "probesOf" (dict "migration" .Values.migration "port" "metrics") }}
{{- end }}

{{- define "probesOf" -}}
startupProbe:
  httpGet: { path: /health/started, port: {{ .port }} }
  periodSeconds: 2
  # A pod that migrates by itself answers nothing before.
  failureThreshold: {{ if .migration.enabled }}90{{ else }}{{ div .migration.deadlineSeconds 2 }}{{ end }}
livenessProbe:
  httpGet: { path: /health, port: {{ .port }} }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end }}
