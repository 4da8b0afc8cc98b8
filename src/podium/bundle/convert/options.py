"""How a bundle is to be installed: what all generators of objects are told beside the bundle."""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.api.kinds import Object
from podium.bundle.convert.certificates import Certificates, Serving
from podium.bundle.convert.installmodes import ALL_NAMESPACES
from podium.bundle.convert.names import UniqueName, unique_name


@dataclass(frozen=True, slots=True)
class Options:
    """Where to install, what to watch, who issues certificates, and how deployments are changed."""

    namespace: str
    watched: tuple[str, ...] = (ALL_NAMESPACES,)
    certificates: Certificates | None = None
    deployment_config: Object = field(default_factory=dict)
    unique_name: UniqueName = unique_name

    @property
    def watches_all(self) -> bool:
        """Whether the operator watches the whole cluster."""
        return self.watched == (ALL_NAMESPACES,)

    def serving(self, deployment: str) -> Serving:
        """The Service in front of a deployment's webhooks, and its certificate."""
        return Serving.of(deployment, self.namespace)

    def trusted(self, obj: Object, deployment: str) -> Object:
        """The object with what makes the certificate of a deployment's webhooks trusted."""
        return self.certificates.trusted(obj, self.serving(deployment)) if self.certificates else obj
