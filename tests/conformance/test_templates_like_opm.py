"""Templates against opm: the same catalogs from the same bundles, for every generation of its edges.

Thousands of templates are rendered by opm's own code in the oracle, with bundles handed to it; some by the
real opm of each generation, which pulls the bundles from a real registry.
"""

from __future__ import annotations

import base64
import functools
import json
import random
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from catalog.bundlefiles import files
from conformance import template_variations as variations
from conformance.bundle_images import push
from conformance.goliterals import module_directory
from conformance.template_variations import Case
from harness import binaries
from harness.oracle import Oracle
from harness.registry import running
from podium.api.findings import Place
from podium.catalog import read, templates, write
from podium.catalog.blobs import CatalogError
from podium.catalog.migrate import Level
from podium.catalog.templates import semver
from podium.catalog.templates.semver import Generation
from podium.catalog.templates.sources import Sources

pytestmark = pytest.mark.oracle

MANY = 2000
WRITERS = {"json": write.json, "yaml": write.yaml}


def _ours(case: Case) -> bytes | None:
    sources = Sources(
        {image: read.blob_of(each, Place()) for image, each in case.bundles.items()}, strict=True
    )
    try:
        return b"".join(write.json(templates.render(case.template.encode(), sources)))
    except CatalogError:
        return None


@pytest.mark.parametrize("draw", [variations.semver, variations.basic, variations.substitutes])
def test_thousands_of_templates_render_the_same(draw: Callable[[random.Random], Case]) -> None:
    cases = [draw(random.Random(seed)) for seed in range(MANY)]
    asked = [
        {
            "template": case.template,
            "bundles": [json.dumps(each) for each in case.bundles.values()],
            "output": "json",
        }
        for case in cases
    ]
    outcomes: Counter[bool] = Counter()
    for case, answer in zip(cases, Oracle().ask_all("catalog.template", asked), strict=True):
        theirs = None if answer.error else base64.b64decode(answer.output or "")
        assert _ours(case) == theirs, (case.template, answer.error)
        outcomes[theirs is None] += 1
    assert outcomes[True] > MANY / 10
    assert outcomes[False] > MANY / 3


# --- the real opm of each generation ---

OPM = {
    Generation.V1_36: "opm-1.36",
    Generation.V1_51: "opm-1.51",
    Generation.V1_57: "opm-1.60",
    Generation.HEAD: "opm",  # 1.61 differs from it only in the package's description and icon
}
VERSIONS = [f"{x}.{y}.{z}" for x in (0, 1) for y in (0, 1, 10) for z in (0, 2, 10)] + [
    "1.1.0-rc.1",
    "1.2.0+b",
]


@dataclass(frozen=True)
class Published:
    """Bundles in a registry, by reference."""

    host: str
    bundles: dict[str, dict[str, bytes]]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    with running(tmp_path_factory.mktemp("registry")) as registry:
        made = {}
        for version in VERSIONS:
            icon = [{"base64data": "PHN2Zy8+", "mediatype": "image/svg+xml"}]
            content = files(version, description=f"About {version}", icon=icon)
            reference = push(registry.host, "acme/demo", version.replace("+", "_"), content, "demo")
            made[reference] = content
        yield Published(registry.host, made)


def _opm(name: str, kind: str, template: str, form: str = "json") -> subprocess.CompletedProcess[bytes]:
    command = [str(binaries.find(name)), "alpha", "render-template", kind, "--use-http", "-o", form, "-"]
    return subprocess.run(command, input=template.encode(), capture_output=True, check=False)


def _semver(chance: random.Random, references: list[str]) -> str:
    template: dict[str, object] = {
        "schema": "olm.semver",
        "generateMajorChannels": chance.random() < 0.6,
        "generateMinorChannels": chance.random() < 0.5,
    }
    for archetype in semver.ARCHETYPES:
        chosen = [{"image": each} for each in chance.sample(references, chance.randint(0, 6))]
        template[archetype] = {"bundles": chosen}
    return json.dumps(template)


@pytest.mark.registry
@pytest.mark.parametrize("generation", OPM)
def test_each_generation_makes_the_same_channels(generation: Generation, published: Published) -> None:
    # Releases around 1.36 kept no manifests of bundles that have an image.
    level = Level.ALL if generation is Generation.V1_36 else Level.NONE
    for seed in range(8):
        template = _semver(random.Random(seed), sorted(published.bundles))
        form = ("json", "yaml")[seed % 2]
        theirs = _opm(OPM[generation], "semver", template, form)
        sources = Sources(published.bundles, strict=True)
        try:
            content = semver.render(template.encode(), sources, generation=generation, level=level)
            ours = b"".join(WRITERS[form](content))
        except CatalogError:
            assert theirs.returncode != 0
        else:
            assert ours == theirs.stdout, (template, theirs.stderr)


@pytest.mark.registry
@pytest.mark.parametrize("name", ["opm-1.36", "opm-1.51", "opm"])
def test_basic_templates_render_the_same_in_their_old_and_new_form(name: str, published: Published) -> None:
    blobs = [
        {"schema": "olm.package", "name": "demo", "defaultChannel": "stable"},
        {"schema": "olm.channel", "package": "demo", "name": "stable", "entries": [{"name": "demo.v1.0.0"}]},
        *({"schema": "olm.bundle", "image": each} for each in sorted(published.bundles)[:4]),
    ]
    template = json.dumps({"schema": "olm.template.basic", "entries": blobs})
    if name == "opm-1.36":
        template = "\n".join(map(json.dumps, blobs))
    theirs = _opm(name, "basic", template, "yaml")
    level = Level.ALL if name == "opm-1.36" else Level.NONE
    ours = b"".join(write.yaml(templates.render(template.encode(), Sources(published.bundles), level=level)))
    assert ours == theirs.stdout, theirs.stderr


@pytest.mark.registry
def test_templates_migrate_their_bundles(published: Published) -> None:
    template = _semver(random.Random(3), sorted(published.bundles))
    command = [
        str(binaries.find("opm")),
        "alpha",
        "render-template",
        "--use-http",
        "--migrate-level",
        "all",
        "-",
    ]
    theirs = subprocess.run(command, input=template.encode(), capture_output=True, check=True)
    content = templates.render(template.encode(), Sources(published.bundles), level=Level.ALL)
    assert b"".join(write.json(content)) == theirs.stdout


# --- upstream's own examples ---


@functools.cache
def _upstream() -> Path:
    oracle = Path(__file__).parents[2] / "conformance" / "go" / "oracle"
    return module_directory("github.com/operator-framework/operator-registry", oracle)


@pytest.mark.parametrize("kind", ["Major", "Minor"])
def test_the_example_in_upstreams_readme_makes_the_channels_it_shows(kind: str) -> None:
    text = (_upstream() / "alpha" / "template" / "semver" / "README.md").read_text()
    template, major, minor = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[:3]
    other = {"Major": "Minor", "Minor": "Major"}[kind]
    template = template.replace(f"Generate{other}Channels: true\n", "")
    named = {image: image.rpartition("v")[2] for image in templates.images(template.encode())}
    bundles = {image: files(version, package="testoperator") for image, version in named.items()}
    made = templates.render(template.encode(), Sources(bundles))
    shown = {
        blob.name: blob.value for blob in read.read([("f", (major if kind == "Major" else minor).encode())])
    }
    assert {blob.name: blob.value for blob in made if blob.schema != "olm.bundle"} == shown
