"""Kustomizations: what cannot be built says so. That the rest is right is proved in tests/conformance."""

from __future__ import annotations

import pytest

from podium.bundle.overlay import OverlayError
from podium.bundle.overlay import kustomize as overlay_kustomize

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"


def build(kustomization: str, **files: str) -> list[str]:
    """The titles of what a folder builds to."""
    mapping = {"top/kustomization.yaml": kustomization, "top/map.yaml": CONFIG_MAP} | {
        name.replace("__", "/").replace("_yaml", ".yaml"): text for name, text in files.items()
    }
    built = overlay_kustomize.build({name: text.encode() for name, text in mapping.items()}, "top")
    return [item.title for item in built]


def test_a_folder_is_built_through_its_layers() -> None:
    assert build(
        "resources: [map.yaml, ../base]\nnamePrefix: a-",
        base__kustomization_yaml="resources: [all.yaml]\nnameSuffix: -z",
        base__all_yaml="apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n",
    ) == ["ConfigMap a-settings", "Secret a-s-z"]


@pytest.mark.parametrize(
    ("kustomization", "message"),
    [
        (
            "resources: [map.yaml]\nvars: [{name: X}]",
            "top/kustomization.yaml:2: the field `vars` is not supported: use `repl",
        ),
        ("helmCharts: [{name: x}]", "`helmCharts` is not supported: render the chart first"),
        ("namePrefx: a-", "`namePrefx` is not supported: is it misspelt"),
        ("resources: [gone.yaml]", "there is no gone.yaml in top"),
        ("resources: ['https://example.com/x']", "lies on another machine: download it"),
        ("resources: ['github.com/a/b?ref=v1']", "lies on another machine: download it"),
        ("resources: [map.yaml, map.yaml]", "ConfigMap settings is listed twice"),
        ("resources: map.yaml", "`resources` must be a list of texts"),
        ("resources: [../top]", "include each other"),
        ("resources: [../empty]", "empty has no kustomization.yaml"),
        ("namePrefix: 3", "`namePrefix` must be a text"),
        ("commonLabels: {a: 1}", "`commonLabels` must map names to texts"),
        ("resources: [map.yaml]\npatches: [{target: {kind: X}}]", "a patch needs either `path` or `patch`"),
        ("patches: [{patch: 'a: b', options: {}}]", "`patches.options` is not supported"),
        ("patches: [{patch: '- {op: add}'}]", "a JSON patch needs a target"),
        ("patches: [{path: gone.yaml}]", "there is no gone.yaml in top"),
        ("patches: [{patch: 'x', target: {kinds: X}}]", "a target has no field `kinds`"),
        ("labels: [{pairs: {a: b}, fields: []}]", "`labels.fields` is not supported"),
        ("images: [{name: a, tag: b}]", "an image has no field `tag`"),
        ("configMapGenerator: [{literals: [a=b]}]", "generator needs a name"),
        ("configMapGenerator: [{name: a, literals: [b]}]", "must be written as key=value"),
        ("configMapGenerator: [{name: a, literals: [b=c, b=d]}]", "given twice"),
        ("configMapGenerator: [{name: a, behavior: merge}]", "there is no ConfigMap a to merge"),
        ("configMapGenerator: [{name: a, behaviour: merge}]", "has no field `behaviour`"),
        (
            "resources: [map.yaml]\nreplacements: [{source: {kind: Secret}, targets: [{select: {}}]}]",
            "source is no object",
        ),
        ("components: [../base]", "the component ../base has no kustomization.yaml"),
        ("resources: [", "top/kustomization.yaml"),
        ("", "the kustomization is empty"),
    ],
)
def test_what_cannot_be_built_is_an_error_with_its_place_and_remedy(kustomization: str, message: str) -> None:
    with pytest.raises(OverlayError) as caught:
        build(kustomization, empty__x_yaml=CONFIG_MAP)
    assert message in str(caught.value)
    assert "kustomization.yaml" in str(caught.value) or caught.value.place.file == ""


def test_local_configuration_is_left_out() -> None:
    local = CONFIG_MAP.replace(
        "settings}", "local, annotations: {config.kubernetes.io/local-config: 'true'}}"
    )
    assert build("resources: [map.yaml, local.yaml]", top__local_yaml=local) == ["ConfigMap settings"]
