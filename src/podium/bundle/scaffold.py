"""A new operator project: what `podium bundle init` writes.

The files are a small operator that is complete: its bundle can be generated, checked and published without
an edit. They are written for people, with comments, so they are texts with names filled in and not dumped.
"""

from __future__ import annotations

import re
from string import Template

from podium.api import names
from podium.bundle.generate.csv import display_name
from podium.bundle.overlay import split_image
from podium.bundle.project import FILE
from podium.text import references


def init(
    name: str,
    *,
    kind: str = "",
    group: str = "example.com",
    images: str = "docker.io/example",
    version: str = "0.1.0",
) -> dict[str, bytes]:
    """The files of a project called `name`, for an operator that manages objects of `kind`."""
    kind = kind or _kind(name)
    for problem in (*names.dns_label(name), *names.dns_subdomain(group)):
        raise ValueError(f"{name if problem in names.dns_label(name) else group!r}: {problem}")
    if not re.fullmatch("[A-Z][A-Za-z0-9]*", kind):
        raise ValueError(f"the kind {kind!r} must be in camel case, such as Memcached")
    repository = _repository(images)
    if not references.is_canonical(f"{repository}/{name}"):
        raise ValueError(f"{repository!r} must name its registry, such as docker.io/example")
    filled = {
        "name": name,
        "title": display_name(name),
        "kind": kind,
        "singular": kind.lower(),
        "plural": _plural(kind.lower()),
        "group": group,
        "images": repository,
        "version": version,
    }
    return {path: _Named(text).substitute(filled).encode() for path, text in sorted(_FILES.items())}


class _Named(Template):
    """Names are written as @name, because the files themselves use dollars."""

    delimiter = "@"


def _repository(images: str) -> str:
    """Where the images lie, which must not be an image itself."""
    images = images.rstrip("/")
    name, tag, digest = split_image(images)
    is_port = "/" not in images and tag.isdigit()
    if digest or (tag and not is_port):
        raise ValueError(
            f"{images!r}: a tag or digest does not belong here; write {name}: "
            "the images below it get the version as their tag"
        )
    return images


def _kind(name: str) -> str:
    words = name.removesuffix("-operator").split("-")
    return "".join(word[:1].upper() + word[1:] for word in words)


def _plural(singular: str) -> str:
    if singular.endswith(("s", "x", "z", "ch", "sh")):
        return f"{singular}es"
    if singular.endswith("y") and singular[-2:-1] not in tuple("aeiou"):
        return f"{singular[:-1]}ies"
    return f"{singular}s"


_PROJECT = """\
# The project: bundle, images and catalog follow from this file.
apiVersion: podium.dev/v1alpha1
kind: OperatorProject
name: @name

# The one version: tags of all images, the bundle's name and its channels follow from it, and wherever
# ${version}, ${version.major} or ${version.dashed} (0-1-0) stands below. Raise it for each release.
version: @version

displayName: @title
description: |
  @title manages @kind objects.

  Say here what it does for its users, in Markdown.
apis:
- kind: @kind
  displayName: @kind
  description: What @title manages.
keywords: [@name]
maturity: alpha
capabilities: Basic Install
provider:
  name: Example
  url: https://@group
maintainers:
- name: Your Name
  email: you@@@group
links:
- name: Documentation
  url: https://@group/docs
icon: icon.svg
minKubeVersion: 1.28.0
installModes: [AllNamespaces]

# Repositories without tags: the version is the tag of each.
images:
  operator: @images/@name
  bundle: @images/@name-bundle
  catalog: @images/@name-catalog
  placeholder: controller    # the image in config/ that stands for the operator

# Which kinds of channel this version belongs to: candidate, fast, stable.
channels: [candidate, fast, stable]
channelsPer: major           # channels are called stable-v0, stable-v1 and so on

manifests: config

# Changes to the manifests. Two versions can run in one namespace, because neither names nor selectors nor the
# leader's lease are shared.
overlay:
  namePrefix: @name-
  nameSuffix: -${version.dashed}
  labels:
    app.kubernetes.io/managed-by: podium
  selectorLabels:
    app.kubernetes.io/version: ${version}
  patches:
  - target: {kind: Deployment, name: controller-manager}
    set:
    - .spec.template.spec.containers[name=manager].args += "--leader-election-id=@name-${version.dashed}"

# `podium publish` adds each version to the template and writes bundle/: commit both after publishing.
catalog:
  template: catalog/template.yaml

signing: none
"""

_DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: controller-manager
  labels:
    app.kubernetes.io/name: @name
spec:
  replicas: 1
  selector:
    matchLabels:
      app.kubernetes.io/name: @name
  template:
    metadata:
      labels:
        app.kubernetes.io/name: @name
      annotations:
        kubectl.kubernetes.io/default-container: manager
    spec:
      serviceAccountName: controller-manager
      terminationGracePeriodSeconds: 10
      securityContext:
        runAsNonRoot: true
        seccompProfile:
          type: RuntimeDefault
      containers:
      - name: manager
        image: controller:latest    # podium.yaml says which image this stands for
        args:
        - --leader-elect
        - --health-probe-bind-address=:8081
        ports:
        - name: probes
          containerPort: 8081
        livenessProbe:
          httpGet:
            path: /healthz
            port: probes
          initialDelaySeconds: 15
          periodSeconds: 20
        readinessProbe:
          httpGet:
            path: /readyz
            port: probes
          initialDelaySeconds: 5
          periodSeconds: 10
        resources:
          requests:
            cpu: 10m
            memory: 64Mi
          limits:
            cpu: 500m
            memory: 128Mi
        securityContext:
          allowPrivilegeEscalation: false
          capabilities:
            drop: [ALL]
"""

_RBAC = """\
apiVersion: v1
kind: ServiceAccount
metadata:
  name: controller-manager
---
# What the operator may do in the whole cluster.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: manager
rules:
- apiGroups: [@group]
  resources: [@plural, @plural/status, @plural/finalizers]
  verbs: [create, delete, get, list, patch, update, watch]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [create, delete, get, list, patch, update, watch]
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: manager
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: manager
subjects:
- kind: ServiceAccount
  name: controller-manager
---
# What it needs in its own namespace to agree on a leader.
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: leader-election
rules:
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create, delete, get, list, patch, update, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: leader-election
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: leader-election
subjects:
- kind: ServiceAccount
  name: controller-manager
---
# For people who may look at @kind objects; nothing binds it.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: @singular-viewer
  labels:
    rbac.authorization.k8s.io/aggregate-to-view: "true"
rules:
- apiGroups: [@group]
  resources: [@plural, @plural/status]
  verbs: [get, list, watch]
"""

_CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: @plural.@group
spec:
  group: @group
  scope: Namespaced
  names:
    kind: @kind
    listKind: @{kind}List
    plural: @plural
    singular: @singular
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources:
      status: {}
    schema:
      openAPIV3Schema:
        description: @kind is what @title manages.
        type: object
        properties:
          apiVersion:
            type: string
          kind:
            type: string
          metadata:
            type: object
          spec:
            description: What is wanted.
            type: object
            properties:
              replicas:
                description: How many of it shall run.
                type: integer
                format: int32
                minimum: 0
                default: 1
          status:
            description: What is there.
            type: object
            properties:
              readyReplicas:
                description: How many of it are ready.
                type: integer
                format: int32
"""

_SAMPLE = """\
# An example for users: it goes into the bundle's alm-examples.
apiVersion: @group/v1alpha1
kind: @kind
metadata:
  name: @singular-sample
spec:
  replicas: 1
"""

# `catalog add` keeps these comments.
_TEMPLATE = """\
# The bundles in the catalog; channels and upgrades follow from their versions. `podium publish` adds one:
# commit this file afterwards. Never remove one: somebody may have it installed and needs a way forward.
schema: olm.semver
generateMajorChannels: true
generateMinorChannels: false
"""

_ICON = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64">\
<rect width="64" height="64" rx="12" fill="#326ce5"/>\
<path d="M18 44h28v6H18zM22 32h20v10H22zM28 16h8v14h-8z" fill="#fff"/></svg>
"""

_README = """\
# @title

An operator for @kind objects (`@plural.@group`).

| File | Holds |
|---|---|
| `podium.yaml` | the project: version, images, channels, what people read about the operator |
| `config/` | plain manifests: the Deployment, its rights, the CRD, an example |
| `catalog/template.yaml` | the versions in the catalog; `podium publish` adds to it |
| `bundle/` | the bundle of the newest version, generated |

    podium bundle generate           # write bundle/ from config/
    podium bundle validate bundle    # check it
    podium publish --dry-run         # what would be pushed, with digests
    podium publish                   # push bundle and catalog

After publishing, commit `catalog/template.yaml` and `bundle/`: the template lists what users may have
installed, and the upgrades to the next version are made from it.

Each release has a version of its own: raise `version` in `podium.yaml`. Bundles never change once published.
"""

_FILES = {
    FILE: _PROJECT,
    "README.md": _README,
    "icon.svg": _ICON,
    "config/deployment.yaml": _DEPLOYMENT,
    "config/rbac.yaml": _RBAC,
    "config/crd.yaml": _CRD,
    "config/sample.yaml": _SAMPLE,
    "catalog/template.yaml": _TEMPLATE,
}
