"""Where the certificates of webhook servers come from.

A provider says which Secret holds the certificate of a Service, tells the objects that call the Service
which CA to trust, and adds the objects that make a certificate come into being. Nothing is signed here:
cert-manager and OpenShift's service CA do it in the cluster, and `Provided` takes what somebody else has
issued.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from podium.api.kinds import Object
from podium.bundle.convert.names import certificate_name, name_with_suffix, service_name
from podium.bundle.convert.objects import annotated, new_object

_CALLERS = ("CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


@dataclass(frozen=True, slots=True)
class Serving:
    """A Service that needs a certificate, and the Secret that the certificate is to be in."""

    service: str
    secret: str
    namespace: str

    @classmethod
    def of(cls, deployment: str, namespace: str) -> Serving:
        """The Service in front of a deployment."""
        return cls(service_name(deployment), certificate_name(deployment), namespace)

    @property
    def dns_names(self) -> list[str]:
        """The names that clients call the Service by."""
        host = f"{self.service}.{self.namespace}"
        return [host, f"{host}.svc", f"{host}.svc.cluster.local"]


class Certificates(Protocol):
    """A source of certificates. The Secret has the keys tls.crt and tls.key, whoever fills it."""

    def trusted(self, obj: Object, serving: Serving) -> Object:
        """The object (a Service, or one that calls it) with what makes its callers trust the certificate."""
        ...

    def objects(self, serving: Serving) -> list[Object]:
        """What has to be in the cluster for the Secret to be there."""
        ...


@dataclass(frozen=True, slots=True)
class CertManager:
    """cert-manager signs: a self-signed Certificate for two years, renewed a day before it ends."""

    def trusted(self, obj: Object, serving: Serving) -> Object:
        if obj["kind"] not in _CALLERS:
            return obj
        return annotated(obj, {"cert-manager.io/inject-ca-from": f"{serving.namespace}/{serving.secret}"})

    def objects(self, serving: Serving) -> list[Object]:
        issuer = name_with_suffix(serving.secret, "selfsigned-issuer")
        spec = {
            "commonName": serving.dns_names[0],
            "dnsNames": serving.dns_names,
            "duration": "17520h0m0s",
            "issuerRef": {"name": issuer},
            "renewBefore": "24h0m0s",
            "secretName": serving.secret,
            "usages": ["server auth"],
        }
        return [
            self._object("Issuer", issuer, serving.namespace, {"selfSigned": {}}),
            self._object("Certificate", serving.secret, serving.namespace, spec),
        ]

    @staticmethod
    def _object(kind: str, name: str, namespace: str, spec: dict[str, Any]) -> Object:
        return new_object("cert-manager.io/v1", kind, name, namespace, spec=spec, status={})


@dataclass(frozen=True, slots=True)
class ServiceCA:
    """OpenShift's service CA signs: it fills the Secret that an annotation of the Service names."""

    def trusted(self, obj: Object, serving: Serving) -> Object:
        prefix = "service.beta.openshift.io"
        if obj["kind"] in _CALLERS:
            return annotated(obj, {f"{prefix}/inject-cabundle": "true"})
        return annotated(obj, {f"{prefix}/serving-cert-secret-name": serving.secret})

    def objects(self, serving: Serving) -> list[Object]:
        return []


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate that somebody has issued, with its key and the CA that signed it, all as PEM."""

    ca_bundle: bytes
    certificate: bytes
    private_key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Provided:
    """The caller has issued certificates, one for each Service by its name (`servings` tells which)."""

    issued: Mapping[str, Issued]

    def trusted(self, obj: Object, serving: Serving) -> Object:
        authority = _base64(self._for(serving).ca_bundle)
        if obj["kind"] == "CustomResourceDefinition":
            conversion = obj["spec"]["conversion"]
            webhook = conversion["webhook"]
            webhook = webhook | {"clientConfig": webhook["clientConfig"] | {"caBundle": authority}}
            return obj | {"spec": obj["spec"] | {"conversion": conversion | {"webhook": webhook}}}
        if obj["kind"] in _CALLERS:
            hooks = [
                hook | {"clientConfig": hook["clientConfig"] | {"caBundle": authority}}
                for hook in obj["webhooks"]
            ]
            return obj | {"webhooks": hooks}
        return obj

    def objects(self, serving: Serving) -> list[Object]:
        issued = self._for(serving)
        data = {"tls.crt": _base64(issued.certificate), "tls.key": _base64(issued.private_key)}
        kind = "kubernetes.io/tls"
        return [new_object("v1", "Secret", serving.secret, serving.namespace, type=kind, data=data)]

    def _for(self, serving: Serving) -> Issued:
        if serving.service not in self.issued:
            raise ValueError(f"no certificate was provided for the Service {serving.service}; see servings()")
        return self.issued[serving.service]


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
