"""Upgrade graphs as pictures: mermaid text with opm's bytes, and SVG that needs no other program.

An arrow points the way an upgrade goes: from the version that is installed to the one that takes its place.
Names may come from any catalog, and pictures end up in web pages: whatever a name holds, it stays a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from html import escape

from podium.catalog.blobs import BUNDLE, CHANNEL, PACKAGE
from podium.catalog.channels import Edge, EdgeKind, edges, too_many_ranges
from podium.catalog.outline import Channel, Entry, Package, bundle_versions
from podium.text.quoting import quote
from podium.text.ranges import Range
from podium.text.semver import Version

MAX_EDGES = 250_000

_ZERO = Version(0, 0, 0)
# Nothing that is printed as it is may turn the direction of writing around, or end the line.
_HIDDEN = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
_SYNTAX = re.compile(rf"""[\s{_HIDDEN}\[\](){{}}<>|;&"'`\\#%,]""")  # what means something in mermaid
_MARKUP = re.compile(rf"""[{_HIDDEN}"#;&`\\]|<(?=[^=\d ])""")
_NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class View:
    """Which part of a catalog to draw."""

    package: str = ""
    minimum: str = ""  # the lowest bundle to show, by name
    v0_semantics: bool = False  # mark what OLM v0 never installs: skipped versions and the edges into them


def mermaid(packages: Mapping[str, Package], view: View = View()) -> str:
    """The graph in mermaid's language, as `opm alpha render-graph` prints it."""
    versions = bundle_versions(packages)
    picture = _Mermaid(view)
    for package in packages.values():
        channels = [channel for channel in _shown(package, view, versions) if channel is not None]
        if channels:
            picture.add(package, channels, versions)
    return picture.text()


def _all_versions(channel: Channel, versions: Mapping[str, Version]) -> dict[str, Version]:
    """The versions of all entries; for opm, what has none has the lowest."""
    return {entry.name: versions.get(entry.name, _ZERO) for entry in channel.entries}


def _check_comparisons(channel: Channel) -> None:
    if too_many_ranges(channel):
        raise ValueError(
            f"channel {channel.name!r} of package {channel.package!r} has {len(channel.entries)} entries "
            "with skip ranges, which are too many to draw"
        )


def _check_edges(count: int) -> None:
    if count > MAX_EDGES:
        raise ValueError(f"the graph has more than {MAX_EDGES} edges: draw one package, or from a minimum on")


def _shown(package: Package, view: View, versions: Mapping[str, Version]) -> Iterator[Channel | None]:
    """The channels of a package with what the view leaves of them; None where it leaves nothing."""
    if view.minimum and view.minimum not in versions:
        raise ValueError(f"unknown minimum edge name: {view.minimum!r}")
    for channel in sorted(package.channels.values(), key=lambda channel: channel.name):
        _check_comparisons(channel)
        if not view.package and not view.minimum:
            yield channel
        elif view.package not in ("", package.name) or (view.minimum and not _holds(package, view.minimum)):
            yield None
        else:
            entries = tuple(
                cut for entry in channel.entries if (cut := _above(entry, view.minimum, versions)) is not None
            )
            yield replace(channel, entries=entries) if entries else None


def _holds(package: Package, name: str) -> bool:
    return any(entry.name == name for channel in package.channels.values() for entry in channel.entries)


def _above(entry: Entry, minimum: str, versions: Mapping[str, Version]) -> Entry | None:
    """The entry with only the edges from the minimum upwards; None if it lies below."""
    if not minimum:
        return entry
    if entry.name == minimum:
        return Entry(entry.name)
    floor = versions[minimum]

    def high(name: str) -> bool:
        return versions.get(name, _ZERO) >= floor

    keeps_range = False
    if entry.skip_range:
        try:
            keeps_range = Range.parse(entry.skip_range).matches(floor)
        except ValueError:
            keeps_range = False
    cut = Entry(
        entry.name,
        replaces=entry.replaces if entry.replaces and high(entry.replaces) else "",
        skips=tuple(filter(high, entry.skips)),
        skip_range=entry.skip_range if keeps_range else "",
    )
    if cut.replaces or cut.skips or cut.skip_range:
        return cut
    had_edges = entry.replaces or entry.skips or entry.skip_range
    return cut if not had_edges and high(entry.name) else None


def _identity(name: str) -> str:
    """A name as an identity in mermaid; opm writes it as it is, which is the same for all usual names."""
    return _SYNTAX.sub(lambda found: f"_{ord(found[0]):x}_", name)


def _label(name: str) -> str:
    """A name in quotes; mermaid knows no backslashes, but codes of characters."""
    return f'"{_words(name)}"' if _SYNTAX.search(name) else quote(name)


def _words(text: str) -> str:
    """A text that may stand between quotes; the signs of comparisons are left, for opm writes them so."""
    return _MARKUP.sub(lambda found: f"#{ord(found[0])};", text)


def _edge_label(edge: Edge) -> str:
    return f'"skipRange({_words(edge.skip_range)})"' if edge.skip_range else edge.kind


@dataclass
class _Mermaid:
    """Collects lines and, apart from them, the styles that mermaid wants at the end."""

    view: View
    lines: list[str] = field(default_factory=list)
    styles: list[str] = field(default_factory=list)
    classes: dict[str, list[str]] = field(default_factory=dict)
    links: int = 0
    skipped_links: list[int] = field(default_factory=list)

    def add(self, package: Package, channels: Iterable[Channel], versions: Mapping[str, Version]) -> None:
        self.lines.append(f"  %% package {_label(package.name)}")
        self.lines.append(f"  subgraph {_label(package.name)}")
        if any(schema == PACKAGE for schema, _ in package.deprecated):
            self.styles.insert(0, f"style {_identity(package.name)} fill:#989695")
        for channel in channels:
            self._channel(package, channel, versions)
        self.lines.append("  end")

    def _channel(self, package: Package, channel: Channel, versions: Mapping[str, Version]) -> None:
        identity = _identity(f"{package.name}-{channel.name}")
        self.lines.append(f"    %% channel {_label(channel.name)}")
        self.lines.append(f"    subgraph {identity}[{_label(channel.name)}]")
        if (CHANNEL, channel.name) in package.deprecated:
            self.styles.append(f"style {identity} fill:#DCD0FF")
        skipped: set[str] = set()
        known = _all_versions(channel, versions)
        for entry in sorted(channel.entries, key=lambda entry: known[entry.name], reverse=True):
            self._entry(package, channel, entry, skipped, known)
        self.lines.append("    end")

    def _entry(
        self,
        package: Package,
        channel: Channel,
        entry: Entry,
        skipped: set[str],
        versions: Mapping[str, Version],
    ) -> None:
        prefix = f"{package.name}-{channel.name}-"
        node = f"{_identity(prefix + entry.name)}[{_label(entry.name)}]"
        self.lines.append(f"      {node}")
        deprecated = (BUNDLE, entry.name) in package.deprecated
        style = ("deprecated" if deprecated else "") + ("skipped" if entry.name in skipped else "")
        if style:
            self.classes.setdefault(style, []).append(_identity(prefix + entry.name))
        for edge in edges(channel, entry, versions):
            source = f"{_identity(prefix + edge.source)}[{_label(edge.source)}]"
            self.lines.append(f"      {source}-- {_edge_label(edge)} --> {node}")
            if self.view.v0_semantics:
                # What a newer entry skips is never installed: edges into it, and a second skip, lead nowhere.
                passed = edge.source if edge.kind is EdgeKind.SKIP else entry.name
                if passed in skipped:
                    self.skipped_links.append(self.links)
                elif edge.kind is EdgeKind.SKIP:
                    skipped.add(passed)
            self.links += 1
            _check_edges(self.links)

    def text(self) -> str:
        """All of it, in mermaid's order."""
        head = [
            "graph LR",
            "  classDef deprecated fill:#E8960F",
            "  classDef skipped stroke:#FF0000,stroke-width:4px",
            "  classDef deprecatedskipped fill:#E8960F,stroke:#FF0000,stroke-width:4px",
        ]
        tail = [f"class {','.join(sorted(names))} {style}" for style, names in sorted(self.classes.items())]
        if self.skipped_links:
            links = ",".join(map(str, self.skipped_links))
            tail.append(f"linkStyle {links} stroke:#FF0000,stroke-width:3px,stroke-dasharray:5;")
        return "\n".join([*head, *self.lines, *self.styles, *tail]) + "\n"


_STEP, _LANE, _NODE_HEIGHT, _MARGIN, _TITLE = 40, 110, 28, 24, 30
_CHARACTER = 7.2  # width of one character of the font below, near enough to size a box


def svg(packages: Mapping[str, Package], view: View = View()) -> str:
    """The graph as a standalone SVG: a lane for each channel, the newest version on the right."""
    versions = bundle_versions(packages)
    parts: list[str] = []
    top = float(_MARGIN)
    width = 0.0
    for package in packages.values():
        channels = [channel for channel in _shown(package, view, versions) if channel is not None]
        if not channels:
            continue
        parts.append(_text(_MARGIN, top + 16, package.name, "package"))
        top += _TITLE
        for channel in channels:
            lane, right = _lane(package, channel, versions, top)
            parts += lane
            width = max(width, right)
            top += _LANE
        top += _MARGIN
    wide, high = round(width + _MARGIN), round(top)
    size = f'width="{wide}" height="{high}" viewBox="0 0 {wide} {high}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n{_STYLE}' + "\n".join(parts) + "\n</svg>\n"


_STYLE = """<style>
text { font: 12px ui-monospace, monospace; fill: #1a1a1a }
.package { font-weight: bold; font-size: 15px } .channel { fill: #555 }
rect { fill: #eef4ff; stroke: #4472c4 } .head rect { fill: #d9f2dd; stroke: #2e7d32; stroke-width: 2 }
.absent rect { fill: #fff; stroke: #999; stroke-dasharray: 4 }
.deprecated rect { fill: #fbe3c0; stroke: #e8960f }
path { fill: none; stroke: #4472c4; marker-end: url(#arrow) }
.skip { stroke-dasharray: 5 3 } .skipRange { stroke-dasharray: 2 3; stroke: #888 }
</style>
<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<polygon points="0,0 8,4 0,8" fill="#4472c4"/></marker></defs>
"""


def _lane(
    package: Package, channel: Channel, versions: Mapping[str, Version], top: float
) -> tuple[list[str], float]:
    """One channel: its boxes and arrows, and how far to the right they reach."""
    ways: list[Edge] = []
    known = _all_versions(channel, versions)
    for entry in channel.entries:
        ways += edges(channel, entry, known)
        _check_edges(len(ways))
    present = {entry.name for entry in channel.entries}
    absent = {edge.source for edge in ways} - present
    names = sorted(present | absent, key=lambda name: (name in present, versions.get(name, _ZERO), name))
    heads = {entry.name for entry in channel.heads}
    default = " (default)" if channel.name == package.default_channel else ""
    parts = [_text(_MARGIN, top + 12, channel.name + default, "channel")]
    middle = top + 62
    left = float(_MARGIN)
    spans: dict[str, tuple[float, float]] = {}
    for name in names:
        box = len(name) * _CHARACTER + 16
        spans[name] = (left, left + box)
        kind = "absent" if name in absent else "head" if name in heads else ""
        kind = "deprecated" if (BUNDLE, name) in package.deprecated else kind
        parts.append(
            f'<g class="{kind}"><rect x="{left:.1f}" y="{middle - _NODE_HEIGHT / 2:.1f}" width="{box:.1f}"'
            f' height="{_NODE_HEIGHT}" rx="5"/>{_text(left + 8, middle + 4, name, "")}</g>'
        )
        left += box + _STEP
    parts += [_arrow(edge, spans, middle) for edge in ways]
    return parts, left - _STEP


def _arrow(edge: Edge, spans: Mapping[str, tuple[float, float]], middle: float) -> str:
    """Straight between neighbours, else an arc over the lane (under it for a skip range)."""
    (left, end), (start, right) = spans[edge.source], spans[edge.target]
    if edge.kind is EdgeKind.REPLACE and 0 < start - end <= _STEP:
        path = f"M{end:.1f},{middle:.1f} L{start:.1f},{middle:.1f}"
    else:
        side = 1 if edge.kind is EdgeKind.SKIP_RANGE else -1
        edge_of_box = middle + side * _NODE_HEIGHT / 2
        a, b = (left + end) / 2, (start + right) / 2
        height = min(30, 10 + abs(b - a) / 30)
        if edge.kind == "skip":
            height += 8  # a replacement of the same version has an arc there, too
        peak = edge_of_box + side * height
        path = f"M{a:.1f},{edge_of_box:.1f} C{a:.1f},{peak:.1f} {b:.1f},{peak:.1f} {b:.1f},{edge_of_box:.1f}"
    title = _escaped(f"{edge.source} to {edge.target}: {_edge_label(edge)}")
    return f'<path class="{edge.kind}" d="{path}"><title>{title}</title></path>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{_escaped(text)}</text>'


def _escaped(text: str) -> str:
    return escape(_NO_XML.sub("\ufffd", text))
