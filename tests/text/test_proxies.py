"""Which proxy the environment names for a URL."""

from __future__ import annotations

import pytest

from podium.text.proxies import proxy_for

PROXIES = {"HTTPS_PROXY": "http://secure:1", "HTTP_PROXY": "plain:2"}


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        ("https://x.example/", {}, ""),
        ("https://x.example/", PROXIES, "http://secure:1"),
        ("http://x.example/", PROXIES, "http://plain:2"),
        ("https://x.example/", {"https_proxy": "https://lower:1"}, "https://lower:1"),
        ("https://localhost:5000/", PROXIES, ""),
        ("https://127.0.0.9/", PROXIES, ""),
        ("https://[::1]:5000/", PROXIES, ""),
        ("https://x.example/", {**PROXIES, "NO_PROXY": "*"}, ""),
        ("https://x.example/", {**PROXIES, "NO_PROXY": "y.example, x.example"}, ""),
        ("https://a.x.example/", {**PROXIES, "no_proxy": "x.example"}, ""),
        ("https://x.example/", {**PROXIES, "NO_PROXY": ".x.example"}, "http://secure:1"),
        ("https://a.x.example/", {**PROXIES, "NO_PROXY": "*.x.example"}, ""),
        ("https://ax.example/", {**PROXIES, "NO_PROXY": "x.example"}, "http://secure:1"),
        ("https://x.example/", {**PROXIES, "NO_PROXY": "x.example:443"}, ""),
        ("https://x.example/", {**PROXIES, "NO_PROXY": "x.example:80"}, "http://secure:1"),
        ("https://10.1.2.3/", {**PROXIES, "NO_PROXY": "10.0.0.0/8"}, ""),
        ("https://10.1.2.3/", {**PROXIES, "NO_PROXY": "10.1.2.3"}, ""),
        ("https://11.1.2.3/", {**PROXIES, "NO_PROXY": "10.0.0.0/8,bad/cidr"}, "http://secure:1"),
        ("https://[fd00::1]/", {**PROXIES, "NO_PROXY": "[fd00::1]:443"}, ""),
    ],
)
def test_the_environment_names_a_proxy(url: str, environ: dict[str, str], proxy: str) -> None:
    assert proxy_for(url, environ) == proxy


@pytest.mark.parametrize("proxy", ["socks5://x:1", "ftp://x", "http://", "://"])
def test_a_proxy_that_cannot_be_used_is_refused(proxy: str) -> None:
    with pytest.raises(ValueError, match="HTTPS_PROXY"):
        proxy_for("https://x.example/", {"HTTPS_PROXY": proxy})
