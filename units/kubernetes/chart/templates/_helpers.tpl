{{- define "labels" -}}
app.kubernetes.io/name: {{ .Values.name }}
app.kubernetes.io/part-of: hadrain
{{- end }}

{{- define "config" -}}
{{ .Values.haproxy.config | default (.Files.Get "files/haproxy.cfg") }}
{{- end }}

{{- define "restricted" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: ["ALL"]
{{- end }}

{{- define "render" -}}
- name: render
  image: {{ .Values.image }}
  imagePullPolicy: {{ .Values.imagePullPolicy }}
  {{- if eq .Values.sidecars "native" }}
  restartPolicy: Always
  {{- end }}
  command: ["/usr/bin/hadrain-render"]
  args:
    - --http.listen=:9778
    # It tries for as long as it takes: a container that waits for its restart
    # makes the pod unready.
    - --start-timeout=24h
  env:
    - name: HOST_IP
      valueFrom:
        fieldRef:
          fieldPath: status.hostIP
    - name: CONSUL_HTTP_ADDR
      value: {{ .Values.consul.address | quote }}
    {{- if .Values.consul.tokenSecret }}
    - name: CONSUL_HTTP_TOKEN_FILE
      value: /run/secrets/hadrain/token
    {{- end }}
    - name: HADRAIN_KV_ROOT
      value: {{ .Values.consul.kvRoot | quote }}
    - name: HADRAIN_STATE
      value: /run/hadrain/state
  ports:
    - name: render
      containerPort: 9778
  # No probe of /readyz: a restart while Consul is away would take the pod out.
  livenessProbe:
    httpGet:
      path: /healthz
      port: render
    periodSeconds: 10
    timeoutSeconds: 2
    failureThreshold: 3
    terminationGracePeriodSeconds: 5
  terminationMessagePolicy: FallbackToLogsOnError
  resources:
    {{- toYaml .Values.resources | nindent 4 }}
  {{- include "restricted" . | nindent 2 }}
  volumeMounts:
    - name: state
      mountPath: /run/hadrain
    {{- if .Values.consul.tokenSecret }}
    - name: token
      mountPath: /run/secrets/hadrain
      readOnly: true
    {{- end }}
{{- end }}

{{- define "responder" -}}
- name: responder
  image: {{ .Values.image }}
  imagePullPolicy: {{ .Values.imagePullPolicy }}
  {{- if eq .Values.sidecars "native" }}
  restartPolicy: Always
  {{- end }}
  command: ["/usr/bin/hadrain-responder"]
  args:
    - --http.listen=:9779
  env:
    - name: HADRAIN_STATE
      value: /run/hadrain/state
  ports:
    - name: responder
      containerPort: 9779
  # Until a state is loaded; it fails with render's reason.
  startupProbe:
    exec:
      command: ["/usr/bin/hadrain", "probe", "http://127.0.0.1:9779/readyz", "http://127.0.0.1:9778/readyz"]
    periodSeconds: 2
    timeoutSeconds: 5
    failureThreshold: 43200
  livenessProbe:
    httpGet:
      path: /healthz
      port: responder
    periodSeconds: 5
    timeoutSeconds: 2
    failureThreshold: 3
    terminationGracePeriodSeconds: 5
  terminationMessagePolicy: FallbackToLogsOnError
  resources:
    {{- toYaml .Values.resources | nindent 4 }}
  {{- include "restricted" . | nindent 2 }}
  volumeMounts:
    - name: state
      mountPath: /run/hadrain
      readOnly: true
{{- end }}
