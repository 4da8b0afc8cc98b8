"""Reads a YAML file of ours field by field, and says what is wrong with each, where, and what was meant.

Every mistake is a finding with its line; reading goes on with a default, so that one run shows them all.
Texts may hold `${version}`, `${version.major}` and `${version.dashed}`, and nothing else of the kind.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from podium.api.findings import Finding, Place, Severity
from podium.text import yaml
from podium.text.semver import Version

MAX_SIZE = 256 << 10
MAX_FINDINGS = 100
_LOCATED = 2 << 20  # bytes that may be looked through for the lines of findings

_PLACEHOLDER = re.compile(r"\$(?P<escaped>\$)?\{(?P<name>[^}]*)\}")


def substitutions(version: Version) -> dict[str, str]:
    """What stands for a version in texts: itself, its major number, and itself as names can hold it."""
    dashed = re.sub(r"[^0-9a-z]+", "-", str(version).lower())
    return {"version": str(version), "version.major": str(version.major), "version.dashed": dashed}


class Source:
    """A file that is being read; gathers findings."""

    def __init__(self, data: bytes, file: str) -> None:
        self._data = data
        self.file = file
        self.findings: list[Finding] = []
        self.variables: Mapping[str, str] = {}
        self.known: set[str] = set()  # every field that was asked for, such as `links[].url`
        self._located = 0

    @property
    def is_hopeless(self) -> bool:
        """Whether there are so many mistakes that nobody wants to see more."""
        return len(self.findings) >= MAX_FINDINGS

    def root(self) -> Fields:
        """The fields of the whole file; none if it is no mapping."""
        if len(self._data) > MAX_SIZE:
            self.problem((), f"the file is larger than {MAX_SIZE >> 10} KiB", "unreadable-project")
            return Fields(self, {}, ())
        try:
            value = yaml.load(self._data)
        except yaml.YAMLError as error:
            place = Place(self.file, 1, getattr(error, "line", 0) or 0)
            self.findings.append(Finding(Severity.ERROR, "unreadable-project", str(error), place=place))
            return Fields(self, {}, ())
        if not isinstance(value, dict):
            self.problem((), "the file must hold a mapping; `podium bundle init` writes an example")
            return Fields(self, {}, ())
        return Fields(self, value, ())

    def problem(self, path: Sequence[str | int], message: str, rule: str = "invalid-project") -> None:
        """Notes a mistake at a path."""
        if self.is_hopeless:
            return
        self.findings.append(
            Finding(Severity.ERROR, rule, message, ".".join(map(str, path)), self.place(path))
        )

    def place(self, path: Sequence[str | int]) -> Place:
        """Where in the file a path is; without a line once that would take too long."""
        self._located += len(self._data)
        if self._located > _LOCATED or len(self._data) > MAX_SIZE:
            return Place(self.file, 1)
        try:
            return Place(self.file, 1, yaml.locate(self._data, path))
        except yaml.YAMLError:
            return Place(self.file, 1)

    def written(self, path: Sequence[str | int]) -> str:
        """A plain value as its author wrote it, such as the number 1.10; empty if that is not known."""
        line = self.place(path).line
        if not line or not path:
            return ""
        text = self._data.decode(errors="replace").splitlines()[line - 1]
        found = re.search(rf"\b{re.escape(str(path[-1]))}[\"']?\s*:\s+([^\s,\]}}#\"']+)", text)
        return found[1] if found else ""

    def text(self, value: str, path: Sequence[str | int]) -> str:
        """A text with its variables replaced."""

        def replaced(match: re.Match[str]) -> str:
            if match["escaped"]:
                return match[0][1:]
            name = match["name"].strip()
            if name not in self.variables:
                known = ", ".join(f"${{{each}}}" for each in self.variables)
                self.problem(
                    path, f"there is no {match[0]}: only {known}; write $${{...}} for the text itself"
                )
                return match[0]
            return self.variables[name]

        return _PLACEHOLDER.sub(replaced, value)

    def value(self, value: Any, path: Sequence[str | int]) -> Any:
        """Any value with the variables in its texts replaced."""
        if isinstance(value, str):
            return self.text(value, path)
        if isinstance(value, dict):
            return {key: self.value(each, (*path, key)) for key, each in value.items()}
        if isinstance(value, list):
            return [self.value(each, (*path, index)) for index, each in enumerate(value)]
        return value


class Fields:
    """The fields of one mapping; a field that nobody asks for is a mistake, which `done` notes."""

    def __init__(self, source: Source, value: Mapping[str, Any], path: tuple[str | int, ...]) -> None:
        self._source = source
        self._value = value
        self._path = path
        self._known: list[str] = []

    @property
    def path(self) -> tuple[str | int, ...]:
        """Where the mapping lies in the file."""
        return self._path

    def __bool__(self) -> bool:
        return bool(self._value)

    def __contains__(self, key: str) -> bool:
        return self._value.get(key) is not None

    def raw(self, key: str) -> Any:
        """The field's value, variables replaced; None if it is missing."""
        self._know(key)
        return self._source.value(self._value.get(key), (*self._path, key))

    def problem(self, key: str, message: str) -> None:
        """Notes a mistake in a field."""
        self._source.problem((*self._path, key), message)

    def text(self, key: str, default: str = "", *, required: str = "") -> str:
        """A text; `required` is what to do if it is missing."""
        value = self.raw(key)
        if value is None:
            if required:
                self._source.problem(self._path, f"`{key}` is missing: {required}")
            return default
        if not isinstance(value, str):
            self.problem(key, f"must be a text{self._quoted(key, value)}")
            return default
        return value

    def version(self, key: str, *, required: str = "") -> str:
        """A text that is a semantic version; empty, with a finding, if it is none."""
        value = self._value.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            self._know(key)
            whole = _three_parts(self._source.written((*self._path, key)) or str(value))
            self.problem(key, f'versions have three parts and are text: write {key}: "{whole or "1.10.0"}"')
            return ""
        text = self.text(key, required=required)
        try:
            Version.parse(text)
        except ValueError as error:
            if text:
                self.problem(key, _version_advice(text) or f"{text!r} is no semantic version: {error}")
            return ""
        return text

    def flag(self, key: str) -> bool:
        """A boolean; false if it is missing."""
        value = self.raw(key)
        if value is not None and not isinstance(value, bool):
            self.problem(key, "must be true or false, without quotes")
        return value is True

    def choice(self, key: str, choices: Sequence[str], default: str) -> str:
        """One of several texts."""
        value = self.text(key, default)
        if value not in choices:
            self.problem(key, f"must be {_either(choices)}, not {value!r}{_meant(value, choices)}")
            return default
        return value

    def texts(self, key: str, choices: Sequence[str] = ()) -> tuple[str, ...]:
        """A list of texts."""
        value = self.raw(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            self.problem(key, "must be a list of texts")
            return ()
        for index, each in enumerate(value):
            if choices and each not in choices:
                message = f"must be {_either(choices)}, not {each!r}{_meant(each, choices)}"
                self._source.problem((*self._path, key, index), message)
        return tuple(value)

    def pairs(self, key: str) -> dict[str, str]:
        """A mapping of texts to texts."""
        value = self.raw(key)
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
            self.problem(key, "must map names to texts; put numbers and booleans in quotes")
            return {}
        return dict(value)

    def fields(self, key: str) -> Fields:
        """The fields of a mapping; none if it is missing."""
        self._know(key)
        value = self._value.get(key)
        if value is not None and not isinstance(value, dict):
            self.problem(key, "must be a mapping")
            value = None
        return Fields(self._source, value or {}, (*self._path, key))

    def each(self, key: str) -> Iterator[Fields]:
        """The fields of each mapping of a list."""
        self._know(key)
        value = self._value.get(key)
        if value is None:
            return
        if not isinstance(value, list):
            self.problem(key, "must be a list")
            return
        for index, entry in enumerate(value):
            if isinstance(entry, dict):
                yield Fields(self._source, entry, (*self._path, key, index))
            else:
                self._source.problem((*self._path, key, index), "must be a mapping")

    def done(self) -> None:
        """Notes fields that do not exist."""
        for key in self._value:
            if self._source.is_hopeless:
                return
            if key not in self._known:
                known = ", ".join(sorted(set(self._known)))
                meant = _meant(key, self._known) or f"; known are {known}"
                self._source.problem(
                    (*self._path, key), f"there is no field `{key}` here{meant}", "unknown-field"
                )

    def _know(self, key: str) -> None:
        self._known.append(key)
        path = "".join("[]" if isinstance(step, int) else f".{step}" for step in (*self._path, key))
        self._source.known.add(path.removeprefix("."))

    def _quoted(self, key: str, value: Any) -> str:
        """What to do about a plain value that should be a text; nobody may lose the zero of 1.10."""
        if isinstance(value, dict | list):
            return ""
        written = self._source.written((*self._path, key)) or json.dumps(value)
        return f'; put it in quotes: "{written}"'


def _three_parts(text: str) -> str:
    """A number such as 1.10 as a whole version; empty if it is none."""
    found = re.fullmatch(r"[0-9]+(\.[0-9]+){0,2}", text)
    return text + ".0" * (2 - text.count(".")) if found else ""


def _version_advice(text: str) -> str:
    """How to write what was meant, if it is a version in another form."""
    plain = text.removeprefix("v")
    whole = _three_parts(plain) or plain
    try:
        Version.parse(whole)
    except ValueError:
        return ""
    return f"drop the v: {whole}" if plain != text else f"a version has three parts: write {whole}"


def _either(choices: Collection[str]) -> str:
    *most, last = choices
    return f"{', '.join(most)} or {last}" if most else last


def _meant(text: str, choices: Collection[str]) -> str:
    close = difflib.get_close_matches(text, choices, n=1)
    return f"; did you mean `{close[0]}`?" if close else ""
