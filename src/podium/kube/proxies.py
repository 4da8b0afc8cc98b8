"""Which proxy leads to an API server: `proxy-url` of the kubeconfig wins, otherwise the environment says.

The rules are those of Go's HTTP client, which kubectl follows; see `podium.text.proxies`.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.kube.errors import ConfigError
from podium.text import proxies


def proxy_from_environment(server: str, environ: Mapping[str, str]) -> str:
    """The proxy that the environment names for a server, or the empty string."""
    try:
        return proxies.proxy_for(server, environ)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def checked_proxy(proxy: str, where: str) -> str:
    """The proxy URL itself if it is one that we can use; ConfigError saying where it stands otherwise."""
    try:
        return proxies.checked(proxy, where)
    except ValueError as error:
        raise ConfigError(str(error)) from None
