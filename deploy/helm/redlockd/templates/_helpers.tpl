{{/* A string of a value that may be a number: quote would write 3600000 as 3.6e+06. */}}
{{- define "redlockd.text" -}}
{{ if kindIs "string" . }}{{ . | quote }}{{ else }}{{ . | toJson | quote }}{{ end }}
{{- end }}

{{/* The variables of redlockd; one in .Values.env takes the place of one here. */}}
{{- define "redlockd.variables" -}}
{{- if .Values.tls }}
- {name: REDLOCKD_TLS_CERT, value: /etc/redlockd/tls/tls.crt}
- {name: REDLOCKD_TLS_KEY, value: /etc/redlockd/tls/tls.key}
- {name: REDLOCKD_AUTH_FILE, value: /etc/redlockd/auth/identities}
- {name: REDLOCKD_NODE_CA, value: /etc/redlockd/node-tls/ca.crt}
{{- end }}
- {name: REDLOCKD_LISTEN, value: "0.0.0.0:8080"}
- {name: REDLOCKD_ALLOW_ANONYMOUS, value: "yes"}
- {name: REDLOCKD_ALLOWED_HOSTS, value: "redlockd.{{ .Release.Namespace }},.svc,.svc.cluster.local"}
- {name: REDLOCKD_NODES_FILE, value: /etc/redlockd/nodes/nodes}
- {name: REDLOCKD_MAX_TTL_MS, value: {{ .Values.maxTtlMs | int | quote }}}
- {name: REDLOCKD_DRAIN_MS, value: "12000"}
{{- end }}

{{/* What the schema of the values cannot say. */}}
{{- define "redlockd.checks" -}}
{{- if hasKey .Values.env "REDLOCKD_MAX_TTL_MS" }}
{{- fail "set maxTtlMs in place of env.REDLOCKD_MAX_TTL_MS" }}
{{- end }}
{{- $ms := int64 .Values.maxTtlMs }}
{{- $least := add1 (div (add (mul $ms 101) 600000) 100000) }}
{{- if lt (int64 .Values.redis.minReadySeconds) $least }}
{{- fail (printf "redis.minReadySeconds must be at least %d, for maxTtlMs=%d" $least $ms) }}
{{- end }}
{{- end }}
