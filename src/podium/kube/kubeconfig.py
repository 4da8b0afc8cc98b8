"""Kubeconfig files: found, merged and turned into a `Config` by the rules that kubectl follows.

Per cluster, user and context the first file that has the entry wins as a whole: entries are never mixed.
The first non-empty current-context wins. Relative paths are relative to the file that holds them. Every
complaint names the file and the entry and says what to do.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from podium.kube.config import PEM, Config, ExecPlugin, Impersonation, in_cluster
from podium.kube.errors import ConfigError
from podium.kube.proxies import checked_proxy, proxy_from_environment

_EXEC_EXTENSION = "client.authentication.k8s.io/exec"
_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")


@dataclass(frozen=True, slots=True)
class Entry:
    """One cluster, user or context, and the file that it came from."""

    section: str
    name: str
    fields: Mapping[str, Any] = field(repr=False)
    file: str

    def __str__(self) -> str:
        return f"{self.file}: {self.section} {self.name!r}" if self.name else self.file

    def text(self, key: str) -> str:
        value = self.fields.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ConfigError(f"{self}: {key} must be text, not {_name_of(value)}; put it in quotes")
        return value

    def flag(self, key: str) -> bool:
        value = self.fields.get(key)
        if value is not None and not isinstance(value, bool):
            raise ConfigError(f"{self}: {key} must be true or false, not {_name_of(value)}")
        return bool(value)

    def texts(self, key: str) -> tuple[str, ...]:
        return tuple(_texts(self.fields.get(key), f"{self}: {key}"))

    def path(self, key: str) -> str:
        return _resolved(self.text(key), self.file)

    def pem(self, key: str) -> PEM:
        """The `key`-data if it is there, otherwise the file that `key` names."""
        encoded = self.text(f"{key}-data")
        if not encoded:
            return PEM(file=self.path(key))
        try:
            return PEM(data=base64.b64decode("".join(encoded.split()), validate=True))
        except binascii.Error as error:
            raise ConfigError(f"{self}: {key}-data is not base64 ({error})") from error

    def sub(self, key: str) -> Entry | None:
        value = self.fields.get(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise ConfigError(f"{self}: {key} must be a mapping, not {_name_of(value)}")
        return Entry(self.section, self.name, value, self.file)


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """Several kubeconfig files seen as one."""

    clusters: Mapping[str, Entry]
    users: Mapping[str, Entry]
    contexts: Mapping[str, Entry]
    current_context: str
    files: tuple[str, ...]


def load(
    path: str | Path = "",
    *,
    context: str = "",
    cluster: str = "",
    user: str = "",
    namespace: str = "",
    environ: Mapping[str, str] | None = None,
) -> Config:
    """The set-up that kubectl would use: this file, or KUBECONFIG, or ~/.kube/config, or the Pod's own.

    `context`, `cluster`, `user` and `namespace` override what the files choose.
    """
    environ = os.environ if environ is None else environ
    files = [str(path)] if path else candidates(environ)
    found = [file for file in files if path or Path(file).exists()]
    if not found and environ.get("KUBERNETES_SERVICE_HOST"):
        config = in_cluster(environ)
        return replace(config, namespace=namespace) if namespace else config
    if not found:
        raise ConfigError(
            f"no kubeconfig found (looked for {', '.join(files) or 'nothing'}) and not in a cluster; "
            "set KUBECONFIG to a kubeconfig file"
        )
    merged = merge([(file, read(file)) for file in found])
    return resolve(merged, context=context, cluster=cluster, user=user, namespace=namespace, environ=environ)


def candidates(environ: Mapping[str, str]) -> list[str]:
    """The files that kubectl would look at, in order of precedence; they need not exist."""
    named = environ.get("KUBECONFIG", "")
    if named:
        return list(dict.fromkeys(file for file in named.split(os.pathsep) if file))
    home = environ.get("HOME", "")
    return [str(Path(home, ".kube", "config"))] if home else []


def read(file: str) -> Mapping[str, Any]:
    """The content of one kubeconfig file; an empty file is an empty kubeconfig."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        content = yaml.load(Path(file).read_bytes(), Loader=loader)
    except OSError as error:
        raise ConfigError(f"cannot read kubeconfig {file}: {error.strerror or error}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"kubeconfig {file} is not valid YAML: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, Mapping):
        raise ConfigError(f"kubeconfig {file} must be a mapping, not {_name_of(content)}")
    return content


def merge(files: Sequence[tuple[str, Mapping[str, Any]]]) -> Kubeconfig:
    """Several files as one: the first that has an entry wins, and entries are never mixed."""
    sections: dict[str, dict[str, Entry]] = {"clusters": {}, "users": {}, "contexts": {}}
    current = ""
    for file, content in files:
        for section, entries in sections.items():
            for name, entry in _entries(file, content, section).items():
                entries.setdefault(name, entry)
        current = current or Entry("", "", content, file).text("current-context")
    return Kubeconfig(**sections, current_context=current, files=tuple(file for file, _ in files))


def resolve(
    kubeconfig: Kubeconfig,
    *,
    context: str = "",
    cluster: str = "",
    user: str = "",
    namespace: str = "",
    environ: Mapping[str, str] | None = None,
) -> Config:
    """The set-up that one context of a kubeconfig describes."""
    chosen = _context(kubeconfig, context, needed=not cluster)
    cluster_name = cluster or (chosen.text("cluster") if chosen else "")
    user_name = user or (chosen.text("user") if chosen else "")
    wanted_by = "by the override" if cluster or user else f"by {chosen}"
    if not cluster_name:
        raise ConfigError(f"{chosen}: names no cluster; add `cluster:` to it")
    cluster_entry = _named(kubeconfig.clusters, "cluster", cluster_name, wanted_by, kubeconfig)
    reached = _reached(cluster_entry, environ or {})
    config = replace(
        reached,
        namespace=namespace or (chosen.text("namespace") if chosen else "") or "default",
        origin=f"{chosen or cluster_entry}",
    )
    if not user_name:
        return config
    user_entry = _named(kubeconfig.users, "user", user_name, wanted_by, kubeconfig)
    return _identified(config, user_entry, cluster_entry)


def _context(kubeconfig: Kubeconfig, name: str, *, needed: bool) -> Entry | None:
    name = name or kubeconfig.current_context
    if not name:
        if not needed:
            return None
        known = ", ".join(kubeconfig.contexts) or "none"
        raise ConfigError(
            f"{_joined(kubeconfig)}: no current-context is set (contexts: {known}); "
            "choose one with `kubectl config use-context`"
        )
    return _named(kubeconfig.contexts, "context", name, "", kubeconfig)


def _named(
    entries: Mapping[str, Entry], section: str, name: str, wanted_by: str, kubeconfig: Kubeconfig
) -> Entry:
    try:
        return entries[name]
    except KeyError:
        wanted = f", which is wanted {wanted_by}" if wanted_by else ""
        known = ", ".join(entries) or "none"
        raise ConfigError(
            f"{_joined(kubeconfig)}: there is no {section} {name!r}{wanted} ({section}s: {known})"
        ) from None


def _entries(file: str, content: Mapping[str, Any], section: str) -> dict[str, Entry]:
    listed = content.get(section)
    if listed is None:
        return {}
    if not isinstance(listed, list):
        raise ConfigError(f"{file}: {section} must be a list, not {_name_of(listed)}")
    singular = section.removesuffix("s")
    entries: dict[str, Entry] = {}
    for index, item in enumerate(listed):
        name = item.get("name") if isinstance(item, Mapping) else None
        if not isinstance(name, str) or not isinstance(item, Mapping):
            raise ConfigError(f"{file}: {section}[{index}] has no name; write `- name: …`")
        fields = item.get(singular)
        if fields is not None and not isinstance(fields, Mapping):
            raise ConfigError(f"{file}: {singular} {name!r} must be a mapping, not {_name_of(fields)}")
        if name in entries:
            raise ConfigError(f"{file}: {singular} {name!r} is there twice; remove one")
        entries[name] = Entry(singular, name, fields or {}, file)
    return entries


def _reached(cluster: Entry, environ: Mapping[str, str]) -> Config:
    """Where the server is and how to trust it."""
    ca, insecure = cluster.pem("certificate-authority"), cluster.flag("insecure-skip-tls-verify")
    if ca and insecure:
        raise ConfigError(
            f"{cluster}: has both a certificate-authority and insecure-skip-tls-verify; remove one of them"
        )
    server = _server(cluster, assume_tls=bool(ca) or insecure)
    proxy = cluster.text("proxy-url")
    return Config(
        server=server,
        ca=ca,
        insecure_skip_tls_verify=insecure,
        tls_server_name=cluster.text("tls-server-name"),
        proxy_url=checked_proxy(proxy, f"{cluster}: proxy-url")
        if proxy
        else proxy_from_environment(server, environ),
        disable_compression=cluster.flag("disable-compression"),
    )


def _server(cluster: Entry, *, assume_tls: bool) -> str:
    server = cluster.text("server")
    if not server:
        raise ConfigError(f"{cluster}: has no server; add `server: https://…`")
    if "://" not in server:
        server = f"{'https' if assume_tls else 'http'}://{server}"
    try:
        url = urlsplit(server)
        port_is_fine = url.port is None or url.port > 0
    except ValueError:
        port_is_fine = False
    if not port_is_fine or url.scheme not in ("http", "https") or not url.hostname:
        raise ConfigError(f"{cluster}: server {server!r} is not a URL; write https://host:port")
    return urlunsplit((url.scheme, url.netloc, url.path.rstrip("/"), "", ""))


def _identified(config: Config, user: Entry, cluster: Entry) -> Config:
    """The same server, with the identity that a user entry describes."""
    config = replace(config, impersonate=_impersonation(user))
    certificate, key = user.pem("client-certificate"), user.pem("client-key")
    token, token_file = user.text("token"), user.path("tokenFile")
    username, password = user.text("username"), user.text("password")
    if certificate and not key:
        raise ConfigError(f"{user}: has a client-certificate but no client-key; add client-key or -data")
    if token and (username or password):
        raise ConfigError(f"{user}: has a token and also a username or password; remove one of them")
    plugin = user.sub("exec")
    if not (certificate or token or token_file or username or password):
        if user.fields.get("auth-provider"):
            raise ConfigError(
                f"{user}: auth-provider is no longer supported by Kubernetes clients; "
                "use an exec plugin of your cloud provider or a token instead"
            )
        if plugin:
            config = replace(config, exec=_exec_plugin(plugin, cluster, config))
    if config.server.startswith("http://"):
        # kubectl sends no credentials over a connection that anyone can read.
        return replace(config, exec=None)
    return replace(
        config,
        client_certificate=certificate,
        client_key=key if certificate else PEM(),
        token=token,
        token_file=token_file,
        username=username,
        password=password,
    )


def _impersonation(user: Entry) -> Impersonation | None:
    name, uid, groups = user.text("as"), user.text("as-uid"), user.texts("as-groups")
    extra = user.sub("as-user-extra")
    if not name:
        if uid or groups or extra:
            raise ConfigError(f"{user}: as-uid, as-groups or as-user-extra without `as`; add `as: USER`")
        return None
    pairs = {key: extra.texts(key) for key in extra.fields} if extra else {}
    return Impersonation(user=name, uid=uid, groups=groups, extra=tuple(pairs.items()))


def _exec_plugin(plugin: Entry, cluster: Entry, config: Config) -> ExecPlugin:
    command, version = plugin.text("command"), plugin.text("apiVersion")
    if not command:
        raise ConfigError(f"{plugin}: exec has no command; add `command:`")
    if version not in _EXEC_VERSIONS:
        raise ConfigError(
            f"{plugin}: exec has apiVersion {version!r}, which is not supported; "
            f"use {' or '.join(_EXEC_VERSIONS)} (perhaps by updating the plugin and its kubeconfig)"
        )
    mode = plugin.text("interactiveMode") or ("" if version == _EXEC_VERSIONS[0] else "IfAvailable")
    if mode not in _INTERACTIVE_MODES:
        raise ConfigError(
            f"{plugin}: exec needs interactiveMode, one of {', '.join(_INTERACTIVE_MODES)}, not {mode!r}"
        )
    return ExecPlugin(
        command=_resolved(command, plugin.file) if os.sep in command else command,
        args=plugin.texts("args"),
        env=tuple(_environment(plugin)),
        api_version=version,
        install_hint=_printable(plugin.text("installHint")),
        interactive_mode=mode,
        cluster_info=_cluster_info(cluster, config) if plugin.flag("provideClusterInfo") else None,
    )


def _environment(plugin: Entry) -> Iterable[tuple[str, str]]:
    for item in plugin.fields.get("env") or ():
        entry = Entry(plugin.section, plugin.name, item if isinstance(item, Mapping) else {}, plugin.file)
        if not entry.text("name"):
            raise ConfigError(f"{plugin}: an env entry of exec has no name")
        yield entry.text("name"), entry.text("value")


def _cluster_info(cluster: Entry, config: Config) -> dict[str, Any]:
    """The cluster in the shape that exec plugins know, with only the fields that say something."""
    extensions = cluster.fields.get("extensions") or ()
    given = next((e.get("extension") for e in extensions if e.get("name") == _EXEC_EXTENSION), None)
    ca = config.ca.read(f"{cluster}: certificate-authority") if config.ca else b""
    info = {
        "server": config.server,
        "tls-server-name": config.tls_server_name,
        "insecure-skip-tls-verify": config.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(ca).decode(),
        "proxy-url": cluster.text("proxy-url"),
        "disable-compression": config.disable_compression,
    }
    return {**{key: value for key, value in info.items() if value}, "config": given}


def _resolved(path: str, file: str) -> str:
    return str(Path(file).absolute().parent / path) if path else ""


def _texts(value: object, where: str) -> Iterable[str]:
    if value is None:
        return
    if not isinstance(value, list):
        raise ConfigError(f"{where} must be a list, not {_name_of(value)}")
    for item in value:
        if not isinstance(item, str):
            raise ConfigError(f"{where} must be a list of texts; put {item!r} in quotes")
        yield item


def _printable(text: str) -> str:
    """Without the control characters by which a file could play tricks on a terminal."""
    return "".join(character for character in text if character.isprintable() or character in "\n\t")


def _joined(kubeconfig: Kubeconfig) -> str:
    return os.pathsep.join(kubeconfig.files)


def _name_of(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list"}
    return names.get(type(value), "a mapping" if isinstance(value, Mapping) else type(value).__name__)
