"""Which files of a catalog directory are no catalog files: gitignore patterns in `.indexignore` files.

The patterns are matched as go-git matches them, for opm uses that: the last pattern that matches a path
decides, be it of the path or of a directory above, so `!a` brings back `a` even inside an ignored directory
(git itself would not). `**` stands for directories only as a whole path element.

A pattern is matched in one pass over a name, whatever stars it has, and there is a limit to their number: a
catalog may come from anybody.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from podium.api.findings import Place
from podium.catalog.blobs import CatalogError

IGNORE_FILE = ".indexignore"
MAX_PATTERNS = 4096


def kept(paths: Iterable[str], ignore_files: Mapping[str, bytes]) -> list[str]:
    """Those of the paths that are catalog files, given the content of all ignore files among them."""
    ignores = Ignores(ignore_files)
    return [path for path in paths if not is_ignore_file(path) and not ignores.match(path)]


def is_ignore_file(path: str) -> bool:
    """Whether a file says which others are to be left out."""
    return path.rpartition("/")[2] == IGNORE_FILE


class Ignores:
    """The patterns of all ignore files of a directory tree."""

    def __init__(self, ignore_files: Mapping[str, bytes]) -> None:
        # By path elements: that is how a walk meets the files, and later ones take precedence.
        ordered = sorted(ignore_files, key=lambda path: path.split("/"))
        self._patterns: list[_Pattern] = []
        for path in ordered:
            self._patterns += _patterns(path, ignore_files[path])
            if len(self._patterns) > MAX_PATTERNS:
                raise CatalogError(f"more than {MAX_PATTERNS} patterns of files to ignore", Place(path))

    def match(self, path: str) -> bool:
        """Whether a file is to be left out."""
        elements = path.split("/")
        for pattern in reversed(self._patterns):
            if pattern.matches(elements):
                return not pattern.included
        return False


@dataclass(frozen=True, slots=True)
class _Pattern:
    directory: tuple[str, ...]  # where the ignore file lies: the pattern is about what is below
    elements: tuple[str, ...]
    included: bool
    directories_only: bool

    def matches(self, path: Sequence[str]) -> bool:
        depth = len(self.directory)
        if len(path) <= depth or tuple(path[:depth]) != self.directory:
            return False
        below = path[depth:]
        return self._matches_any_element(below) if len(self.elements) == 1 else self._matches_path(below)

    def _matches_any_element(self, path: Sequence[str]) -> bool:
        for index, element in enumerate(path):
            if _glob(self.elements[0], element):
                return not (self.directories_only and index == len(path) - 1)
        return False

    def _matches_path(self, path: Sequence[str]) -> bool:
        rest = list(path)
        matched = skipping = False
        for index, wanted in enumerate(self.elements):
            if wanted == "":
                skipping = False
            elif wanted == "**":
                if index == len(self.elements) - 1:
                    break
                skipping = True
            elif "**" in wanted or not rest:
                return False
            else:
                matched, rest = _advance(wanted, rest, skipping)
                if not skipping and not matched:
                    return False
                skipping = False
        return matched and not (self.directories_only and not rest)


def _advance(wanted: str, path: list[str], skipping: bool) -> tuple[bool, list[str]]:
    """Whether an element matches the next of the path (any later one if skipping), and what is left then."""
    if not skipping:
        return _glob(wanted, path[0]), path[1:]
    for index, element in enumerate(path):
        if _glob(wanted, element):
            return True, path[index + 1 :]
    return False, []


def _patterns(path: str, data: bytes) -> Iterator[_Pattern]:
    directory = tuple(path.split("/")[:-1])
    for line in data.decode(errors="replace").split("\n"):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        included = text.startswith("!")
        text = text[1:] if included else text
        if not text.endswith("\\ "):
            text = text.rstrip(" ")
        directories_only = text.endswith("/")
        text = text[:-1] if directories_only else text
        yield _Pattern(directory, tuple(text.split("/")), included, directories_only)


def _glob(pattern: str, name: str) -> bool:
    expression = _expression(pattern)
    return expression is not None and expression.fullmatch(name) is not None


_TOKEN = re.compile(r"\*+|\?|\\(.)|\[(\^?)((?:\\.|[^\]\\])+)\]|([^\[\]\\*?]|\])", re.DOTALL)
_RANGE = re.compile(r"(\\.|[^\\\-])(?:-(\\.|[^\\\-]))?", re.DOTALL)


@functools.lru_cache(MAX_PATTERNS)
def _expression(pattern: str) -> re.Pattern[str] | None:
    """A glob of Go's filepath.Match as a regular expression; None if malformed: it matches nothing then."""
    parts = [""]  # the texts between stars
    at = 0
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None:
            return None
        at = token.end()
        escaped, negated, ranges, literal = token.groups()
        if ranges is not None:
            choices = _choices(ranges)
            if choices is None:
                return None
            parts[-1] += f"(?:{'(?!' if negated else '(?='}{choices}).)"
        elif escaped is not None or literal is not None:
            parts[-1] += re.escape(escaped or literal)
        elif token[0] == "?":
            parts[-1] += "."
        else:
            parts.append("")
    if len(parts) == 1:
        return re.compile(parts[0], re.DOTALL)
    # Where a text between two stars fits first is as good as any later place: there is no need to go back.
    between = "".join(f"(?>.*?{part})" for part in parts[1:-1])
    return re.compile(f"{parts[0]}{between}.*{parts[-1]}", re.DOTALL)


def _choices(ranges: str) -> str | None:
    """The inside of square brackets as an alternation."""
    choices: list[str] = []
    at = 0
    while at < len(ranges):
        found = _RANGE.match(ranges, at)
        if found is None:
            return None
        at = found.end()
        low, high = (end[-1] if end else "" for end in found.groups(default=""))
        high = high or low
        if low <= high:
            choices.append(f"[{re.escape(low)}-{re.escape(high)}]")
    return "|".join(choices) or "(?!)"
