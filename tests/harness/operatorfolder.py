"""A folder of plain manifests for an operator that has a bit of everything a bundle can be made from."""

from __future__ import annotations

from podium.api.kinds import Object
from podium.text import yaml

_TEXT = """
apiVersion: v1
kind: Namespace
metadata: {name: system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: manager, namespace: system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: helper, namespace: system}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: system}
data: {mode: fast}
---
apiVersion: v1
kind: Secret
metadata: {name: token, namespace: system}
stringData: {token: abc}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: important}
value: 1000
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: manager
  namespace: system
  labels: {app: tool}
spec:
  replicas: 1
  selector: {matchLabels: {app: tool}}
  template:
    metadata:
      labels: {app: tool}
    spec:
      serviceAccountName: manager
      priorityClassName: important
      initContainers:
      - name: prepare
        image: busybox
        envFrom: [{secretRef: {name: token}}]
      containers:
      - name: manager
        image: controller:latest
        args: [--leader-elect]
        env:
        - {name: WATCH_NAMESPACE, value: ""}
        - {name: RELATED_IMAGE_DATA_BASE, value: "quay.io/tools/db:1"}
        - {name: MODE, valueFrom: {configMapKeyRef: {name: settings, key: mode}}}
        ports: [{containerPort: 9443, name: webhook}]
        volumeMounts: []
      - name: proxy
        image: registry.example:5000/tools/proxy:2@sha256:aaaa
        ports: [{containerPort: 8443}]
      volumes:
      - {name: settings, configMap: {name: settings}}
      - {name: token, secret: {secretName: token}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: manager}
rules:
- {apiGroups: [tools.example.com], resources: [tools], verbs: ["*"]}
- {apiGroups: [""], resources: [secrets], resourceNames: [token], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: manager}
subjects: [{kind: ServiceAccount, name: manager, namespace: system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: leader, namespace: system}
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, update]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: leader, namespace: system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leader}
subjects: [{kind: ServiceAccount, name: manager, namespace: system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: viewer}
rules: [{apiGroups: [tools.example.com], resources: [tools], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: helper, namespace: system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: viewer}
subjects: [{kind: ServiceAccount, name: helper, namespace: system}]
---
apiVersion: v1
kind: Service
metadata: {name: webhook-service, namespace: system}
spec:
  ports: [{port: 443, targetPort: 9443}]
  selector: {app: tool}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: manager, namespace: system}
spec: {minAvailable: 1, selector: {matchLabels: {app: tool}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: metrics, namespace: system}
spec:
  podSelector: {matchLabels: {app: tool}}
  ingress: [{from: [{podSelector: {matchLabels: {app: scraper}}}]}]
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: metrics, namespace: system}
spec: {endpoints: [{port: https}], selector: {matchLabels: {app: tool}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tools.tools.example.com}
spec:
  group: tools.example.com
  scope: Namespaced
  names: {kind: Tool, listKind: ToolList, plural: tools, singular: tool}
  conversion:
    strategy: Webhook
    webhook:
      clientConfig: {service: {name: webhook-service, namespace: system, path: /convert}}
      conversionReviewVersions: [v1]
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1alpha1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
---
apiVersion: tools.example.com/v1
kind: Tool
metadata: {name: sample}
spec: {size: 3, motto: "a < b & c"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: validating}
webhooks:
- name: vtool.kb.io
  admissionReviewVersions: [v1]
  clientConfig: {service: {name: webhook-service, namespace: system, path: /validate}}
  failurePolicy: Fail
  sideEffects: None
  rules:
  - {apiGroups: [tools.example.com], apiVersions: [v1], operations: [CREATE], resources: [tools]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: mutating}
webhooks:
- name: mtool.kb.io
  admissionReviewVersions: [v1]
  clientConfig: {service: {name: webhook-service, namespace: system, path: /mutate}}
  reinvocationPolicy: IfNeeded
  objectSelector: {matchLabels: {managed: "true"}}
  sideEffects: None
  rules:
  - {apiGroups: [tools.example.com], apiVersions: [v1], operations: [CREATE], resources: [tools]}
"""


def objects() -> list[Object]:
    """The operator's objects, made anew for each caller."""
    return list(yaml.load_all(_TEXT))


def stream(values: list[Object]) -> bytes:
    """Objects as one file."""
    return "---\n".join(yaml.dump(value) for value in values).encode()


def folder() -> dict[str, bytes]:
    """The operator's manifests, all in one file."""
    return {"config/all.yaml": _TEXT.encode()}
