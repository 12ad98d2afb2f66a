{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{- define "volferry.vault" -}}
{{ .Values.vaultNamespace | default .Release.Namespace }}
{{- end }}

{{- define "volferry.labels" -}}
app.kubernetes.io/name: volferry
app.kubernetes.io/component: controller
{{- end }}
