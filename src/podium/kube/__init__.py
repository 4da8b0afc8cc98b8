"""The Kubernetes runtime: a client, and what controllers are built from on top of it.

Read `client.Client` first; `kubeconfig.load` makes its configuration and `errors` draws what it raises.
Nothing here keeps state of its own on disk, and nothing imports the embedded server: a controller cannot tell
which kind of control plane it runs against. Importing this package is cheap: the HTTP library is loaded when
a client is first used.
"""

from __future__ import annotations

from podium.api.kinds import GVK, Key, Object
from podium.kube.calls import RequestDone
from podium.kube.client import Client, ObjectList, Page, PatchType
from podium.kube.config import PEM, Config, ExecPlugin, Impersonation
from podium.kube.config import in_cluster as in_cluster_config
from podium.kube.discovery import Discovery
from podium.kube.kubeconfig import load as load_config
from podium.kube.resource import Resource
from podium.kube.transport import Response, Transport
from podium.kube.watchstream import WatchEvent

__all__ = [
    "GVK",
    "PEM",
    "Client",
    "Config",
    "Discovery",
    "ExecPlugin",
    "Impersonation",
    "Key",
    "Object",
    "ObjectList",
    "Page",
    "PatchType",
    "RequestDone",
    "Resource",
    "Response",
    "Transport",
    "WatchEvent",
    "in_cluster_config",
    "load_config",
]
