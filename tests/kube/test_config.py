from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from podium.kube import kubeconfig
from podium.kube.config import PEM, Config, in_cluster
from podium.kube.errors import ConfigError
from podium.kube.kubeconfig import load, merge
from podium.kube.proxies import proxy_from_environment

NAMES = st.sampled_from(["red", "green", "blue"])
SECTIONS = st.dictionaries(NAMES, st.integers(0, 9), max_size=3)


def document(
    cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **context: str
) -> dict[str, Any]:
    """A kubeconfig with one of each, all called `one`."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "clusters": [{"name": "one", "cluster": {"server": "https://one:6443", **(cluster or {})}}],
        "users": [{"name": "one", "user": user or {}}],
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one", **context}}],
    }


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def loaded(tmp_path: Path, content: Any, **options: Any) -> Config:
    return load(write(tmp_path / "config", content), environ={}, **options)


@given(st.lists(st.tuples(SECTIONS, SECTIONS, SECTIONS, st.sampled_from(["", "red", "blue"])), max_size=4))
def test_the_first_file_with_an_entry_wins_and_entries_are_never_mixed(
    files: list[tuple[dict[str, int], dict[str, int], dict[str, int], str]],
) -> None:
    documents: list[tuple[str, dict[str, Any]]] = []
    for index, (clusters, users, contexts, current) in enumerate(files):
        content: dict[str, Any] = {
            "clusters": [
                {"name": n, "cluster": {"server": f"s{v}", f"only{index}": 1}} for n, v in clusters.items()
            ],
            "users": [{"name": n, "user": {"token": f"t{v}", f"only{index}": 1}} for n, v in users.items()],
            "contexts": [{"name": n, "context": {"cluster": f"c{v}"}} for n, v in contexts.items()],
            "current-context": current,
        }
        documents.append((f"file{index}", content))
    merged = merge(documents)
    for section, position, singular in (
        ("clusters", 0, "cluster"),
        ("users", 1, "user"),
        ("contexts", 2, "context"),
    ):
        found = getattr(merged, section)
        assert set(found) == {name for file in files for name in file[position]}
        for name, entry in found.items():
            first = next(i for i, file in enumerate(files) if name in file[position])
            assert entry.file == f"file{first}"
            listed = documents[first][1][section]
            assert entry.fields == next(item[singular] for item in listed if item["name"] == name)
    assert merged.current_context == next((file[3] for file in files if file[3]), "")


def test_several_files_are_found_by_kubeconfig_and_missing_ones_skipped(tmp_path: Path) -> None:
    first = write(
        tmp_path / "a" / "config", {"current-context": "", "users": [{"name": "one", "user": {"token": "A"}}]}
    )
    second = write(tmp_path / "b" / "config", document({"certificate-authority": "ca.crt"}, {"token": "B"}))
    listed = f":{first}:{tmp_path / 'missing'}:{second}:{first}:"
    config = load(environ={"KUBECONFIG": listed})
    assert config.token == "A"
    assert config.ca.file == str(tmp_path / "b" / "ca.crt")


def test_without_kubeconfig_the_home_directory_is_used(tmp_path: Path) -> None:
    write(tmp_path / ".kube" / "config", document(namespace="team"))
    config = load(environ={"HOME": str(tmp_path)})
    assert (config.server, config.namespace) == ("https://one:6443", "team")


def test_relative_paths_are_relative_to_their_file(tmp_path: Path) -> None:
    user = {
        "client-certificate": "pki/me.crt",
        "client-key": "/abs/me.key",
        "tokenFile": "../token",
    }
    config = loaded(tmp_path / "deep", document({"certificate-authority": "pki/ca.crt"}, user))
    base = tmp_path / "deep"
    assert config.ca.file == str(base / "pki/ca.crt")
    assert config.client_certificate.file == str(base / "pki/me.crt")
    assert config.client_key.file == "/abs/me.key"
    assert Path(config.token_file).resolve() == (tmp_path / "token").resolve()


def test_embedded_data_wins_over_a_file(tmp_path: Path) -> None:
    data = base64.b64encode(b"PEM").decode()
    cluster = {"certificate-authority": "ca.crt", "certificate-authority-data": data[:2] + "\n" + data[2:]}
    config = loaded(tmp_path, document(cluster))
    assert config.ca == PEM(data=b"PEM")


def test_overrides_choose_other_entries(tmp_path: Path) -> None:
    content = document(namespace="mine")
    content["clusters"].append({"name": "two", "cluster": {"server": "https://two/base/"}})
    content["users"].append({"name": "two", "user": {"username": "u", "password": "p"}})
    content["contexts"].append({"name": "bare", "context": {"cluster": "two"}})
    assert loaded(tmp_path, content, cluster="two").server == "https://two/base"
    assert loaded(tmp_path, content, user="two").username == "u"
    assert loaded(tmp_path, content, namespace="other").namespace == "other"
    bare = loaded(tmp_path, content, context="bare")
    assert (bare.server, bare.username, bare.namespace) == ("https://two/base", "", "default")
    del content["current-context"]
    assert loaded(tmp_path, content, cluster="two", user="two").password == "p"


def test_everything_a_kubeconfig_can_say_about_identity_arrives(tmp_path: Path) -> None:
    user = {
        "token": "secret-token",
        "as": "jane",
        "as-uid": "7",
        "as-groups": ["a", "b"],
        "as-user-extra": {"scopes": ["x", "y"]},
    }
    cluster = {"tls-server-name": "api", "insecure-skip-tls-verify": True, "disable-compression": True}
    config = loaded(tmp_path, document(cluster, user))
    assert config.impersonate is not None
    assert config.impersonate.groups == ("a", "b")
    assert config.impersonate.extra == (("scopes", ("x", "y")),)
    assert (config.tls_server_name, config.insecure_skip_tls_verify, config.disable_compression) == (
        "api",
        True,
        True,
    )
    assert config.token == "secret-token"
    assert "secret-token" not in repr(config)


def test_no_credentials_go_over_a_connection_that_anyone_can_read(tmp_path: Path) -> None:
    config = loaded(tmp_path, document({"server": "http://one"}, {"token": "t", "as": "jane"}))
    assert config.token == ""
    assert config.impersonate is not None


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        ({"server": "one:6443"}, "http://one:6443"),
        ({"server": "one:6443", "insecure-skip-tls-verify": True}, "https://one:6443"),
        ({"server": "https://[::1]:6443/"}, "https://[::1]:6443"),
        ({"server": "https://rancher/k8s/clusters/c-1/?x=1"}, "https://rancher/k8s/clusters/c-1"),
    ],
)
def test_the_server_is_read_as_kubectl_reads_it(
    tmp_path: Path, cluster: dict[str, Any], expected: str
) -> None:
    assert loaded(tmp_path, document(cluster)).server == expected


def test_an_exec_plugin_keeps_what_it_needs(tmp_path: Path) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "./bin/login",
        "args": ["--cluster", "x"],
        "env": [{"name": "A", "value": "1"}],
        "installHint": "get it \x1b[31mhere",
        "interactiveMode": "Never",
        "provideClusterInfo": True,
    }
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "y"}}
    (tmp_path / "ca.crt").write_bytes(b"PEM")
    cluster = {"certificate-authority": "ca.crt", "extensions": [extension]}
    config = loaded(tmp_path, document(cluster, {"exec": plugin}))
    assert config.exec is not None
    assert Path(config.exec.command) == tmp_path / "bin/login"
    assert (config.exec.args, config.exec.env) == (("--cluster", "x"), (("A", "1"),))
    assert config.exec.install_hint == "get it [31mhere"
    assert config.exec.cluster_info == {
        "server": "https://one:6443",
        "certificate-authority-data": base64.b64encode(b"PEM").decode(),
        "config": {"audience": "y"},
    }


def test_the_older_exec_version_needs_no_interactive_mode(tmp_path: Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "login"}
    config = loaded(tmp_path, document(user={"exec": plugin}))
    assert config.exec is not None
    assert (config.exec.command, config.exec.interactive_mode) == ("login", "IfAvailable")


def test_a_plugin_is_not_run_where_other_credentials_are_given(tmp_path: Path) -> None:
    config = loaded(tmp_path, document(user={"token": "t", "exec": {"command": "x"}}))
    assert config.exec is None


V1 = "client.authentication.k8s.io/v1"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "is not valid YAML"),
        ("- a", "must be a mapping, not a list"),
        ({}, "no current-context is set (contexts: none)"),
        ({**document(), "current-context": "two"}, "there is no context 'two' (contexts: one)"),
        (
            {**document(), "current-context": 7},
            "current-context must be text, not a number; put it in quotes",
        ),
        ({**document(), "clusters": []}, "there is no cluster 'one', which is wanted by"),
        ({**document(), "users": []}, "there is no user 'one', which is wanted by"),
        ({**document(), "users": "x"}, "users must be a list, not text"),
        ({**document(), "users": [{"user": {}}]}, "users[0] has no name"),
        ({**document(), "users": [{"name": "one", "user": "x"}]}, "user 'one' must be a mapping"),
        ({**document(), "users": [{"name": "one"}, {"name": "one"}]}, "user 'one' is there twice"),
        (document(cluster={"server": ""}), "cluster 'one': has no server"),
        (document(cluster={"server": "ftp://one"}), "is not a URL; write https://host:port"),
        (document(cluster={"server": "https://one:port"}), "is not a URL; write https://host:port"),
        (document(cluster={"certificate-authority-data": "%%"}), "certificate-authority-data is not base64"),
        (
            document(cluster={"certificate-authority": "x", "insecure-skip-tls-verify": True}),
            "both a certificate-authority and insecure-skip-tls-verify",
        ),
        (document(cluster={"insecure-skip-tls-verify": "yes"}), "must be true or false, not text"),
        (document(cluster={"proxy-url": "socks5://x"}), "SOCKS proxies are not supported"),
        (document(cluster={"proxy-url": "proxy:3128"}), "proxy-url: not a proxy URL"),
        (document(user={"token": 12345}), "user 'one': token must be text, not a number; put it in quotes"),
        (document(user={"client-certificate": "x"}), "has a client-certificate but no client-key"),
        (document(user={"token": "t", "username": "u"}), "has a token and also a username"),
        (document(user={"as-groups": ["a"]}), "without `as`"),
        (document(user={"as": "x", "as-groups": "a"}), "as-groups must be a list"),
        (document(user={"auth-provider": {"name": "gcp"}}), "auth-provider is no longer supported"),
        (document(user={"exec": {"apiVersion": V1}}), "exec has no command"),
        (document(user={"exec": {"command": "x"}}), "apiVersion '', which is not supported"),
        (document(user={"exec": {"command": "x", "apiVersion": V1}}), "exec needs interactiveMode"),
        (
            document(
                user={"exec": {"command": "x", "apiVersion": V1 + "alpha1", "interactiveMode": "Never"}}
            ),
            "is not supported; use client.authentication.k8s.io/v1 or",
        ),
    ],
)
def test_a_broken_kubeconfig_is_explained(tmp_path: Path, content: Any, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, content)
    assert complaint in str(caught.value)
    assert str(tmp_path / "config") in str(caught.value)


def test_a_file_that_was_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read kubeconfig .*missing: No such file"):
        load(tmp_path / "missing", environ={})


def test_finding_nothing_says_where_one_looked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"looked for .*config.* not in a cluster; set KUBECONFIG"):
        load(environ={"HOME": str(tmp_path)})


def pod(tmp_path: Path) -> Path:
    for name, text in (("token", "t0"), ("ca.crt", "PEM"), ("namespace", "mine\n")):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    config = in_cluster(environ, service_account=pod(tmp_path))
    assert (config.server, config.namespace) == ("https://[fd00::1]:443", "mine")
    assert (config.token_file, config.ca.file) == (str(tmp_path / "token"), str(tmp_path / "ca.crt"))


def test_a_pod_without_a_token_is_explained(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(ConfigError, match="automountServiceAccountToken"):
        in_cluster(environ, service_account=tmp_path)
    with pytest.raises(ConfigError, match="not in a cluster"):
        in_cluster({}, service_account=tmp_path)


def test_without_any_kubeconfig_a_pod_is_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def found(environ: dict[str, str]) -> Config:
        return in_cluster(environ, service_account=pod(tmp_path))

    monkeypatch.setattr(kubeconfig, "in_cluster", found)
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    assert load(environ=environ).namespace == "mine"
    assert load(environ=environ, namespace="other").namespace == "other"


@pytest.mark.parametrize(
    ("server", "environ", "expected"),
    [
        ("https://api.example.com", {}, ""),
        ("https://api.example.com", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("https://api.example.com", {"https_proxy": "p:1"}, "http://p:1"),
        ("https://api.example.com", {"HTTP_PROXY": "http://p:1"}, ""),
        ("http://api.example.com", {"HTTP_PROXY": "http://p:1"}, "http://p:1"),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": "http://p:1"}, ""),
        ("https://[::1]:6443", {"HTTPS_PROXY": "http://p:1"}, ""),
        ("https://localhost:6443", {"HTTPS_PROXY": "http://p:1"}, ""),
        ("https://api.example.com", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, ""),
        ("https://api.example.com", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "x, example.com"}, ""),
        ("https://api.example.com", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".example.com"}, ""),
        ("https://api.example.com", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*.example.com"}, ""),
        ("https://example.com", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".example.com"}, "http://p:1"),
        ("https://notexample.com", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "example.com"}, "http://p:1"),
        ("https://api.example.com:6443", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "example.com:6443"}, ""),
        (
            "https://api.example.com:6443",
            {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "example.com:1"},
            "http://p:1",
        ),
        ("https://10.1.2.3", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8"}, ""),
        ("https://11.1.2.3", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8,bad/cidr"}, "http://p:1"),
        ("https://10.1.2.3", {"HTTPS_PROXY": "http://p:1", "no_proxy": "10.1.2.3"}, ""),
        ("https://[fd00::1]:6443", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "[fd00::1]:6443"}, ""),
    ],
)
def test_the_environment_names_the_proxy(server: str, environ: dict[str, str], expected: str) -> None:
    assert proxy_from_environment(server, environ) == expected


def test_the_proxy_of_the_kubeconfig_wins_over_the_environment(tmp_path: Path) -> None:
    path = write(tmp_path / "config", document({"proxy-url": "http://mine:1"}))
    assert load(path, environ={"HTTPS_PROXY": "http://p:1"}).proxy_url == "http://mine:1"
    path = write(tmp_path / "config", document())
    assert load(path, environ={"HTTPS_PROXY": "http://p:1"}).proxy_url == "http://p:1"
