"""The project file: one version that everything follows from, and mistakes that say what was meant."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from harness import operatorfolder
from podium.api.findings import failed
from podium.bundle import project
from podium.bundle.generate import Generated
from podium.bundle.overlay import OverlayError
from podium.bundle.project import Project, ProjectError
from podium.text import yaml

NOW = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
CSV = "manifests/tool-operator.clusterserviceversion.yaml"
HEAD = "apiVersion: podium.dev/v1alpha1\nkind: OperatorProject\nname: tool-operator\nversion: 2.1.0\n"
FULL = (
    HEAD
    + """
displayName: Tool
descriptionFile: README.md
icon: icon.png
provider: {name: Me, url: https://example.com}
maintainers: [{name: Ann, email: ann@example.com}]
links: [{name: Home, url: https://example.com}]
apis: [{kind: Tool, displayName: A tool, description: Useful}]
keywords: [tool]
maturity: stable
capabilities: Full Lifecycle
categories: [Database, Monitoring]
minKubeVersion: 1.28.0
installModes: [OwnNamespace, AllNamespaces]
replaces: tool-operator.v2.0.0
skipRange: ">=2.0.0 <${version}"
images:
  operator: quay.io/me/tool
  bundle: quay.io/me/tool-bundle
  catalog: quay.io/me/tool-catalog
channels: [stable, fast]
manifests: config
dependencies: deps.yaml
overlay:
  nameSuffix: -${version.dashed}
  selectorLabels: {operatorVersion: "v${version.major}"}
  patches:
  - target: {kind: Deployment, name: manager}
    set:
    - .spec.template.spec.containers[name=manager].args += "--leader-election-id=tool-${version.dashed}"
  - file: patches/more.yaml
    target: {kind: ConfigMap}
  - patch:
      apiVersion: v1
      kind: Service
      metadata: {name: webhook-service}
      spec: {type: ClusterIP}
signing: none
"""
)
FILES = {
    **operatorfolder.folder(),
    "README.md": b"# Tool\n",
    "icon.png": b"\x89PNG",
    "broken.yaml": b"a: [1\nb: 2\n",
    "deps.yaml": b"dependencies: []\n",
    "patches/more.yaml": b"- {op: add, path: /data/version, value: 'v${version}'}\n",
}


def parsed(text: str = FULL, files: dict[str, bytes] | None = None) -> Project:
    return project.parse(text.encode(), files=FILES if files is None else files)


def bundle(text: str = FULL, **files: bytes) -> Generated:
    return project.bundle(parsed(text), {**FILES, **files}, now=NOW)


def problems(text: str) -> list[str]:
    with pytest.raises(ProjectError) as caught:
        parsed(text)
    return [str(finding) for finding in caught.value.findings]


def test_one_version_names_everything() -> None:
    made = parsed()
    assert made.operator_image == "quay.io/me/tool:2.1.0"
    assert made.bundle_image == "quay.io/me/tool-bundle:2.1.0"
    assert made.channels == ("fast-v2", "stable-v2")
    assert made.default_channel == "stable-v2"
    assert parsed(FULL + "channelsPer: minor\n").channels == ("fast-v2.1", "stable-v2.1")


def test_a_project_becomes_a_bundle() -> None:
    made = bundle()
    assert not failed(made.findings)
    csv = yaml.load(made.files[CSV])
    spec, annotations = csv["spec"], csv["metadata"]["annotations"]
    (deployment,) = spec["install"]["spec"]["deployments"]
    assert deployment["name"] == "manager-2-1-0"
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == annotations["containerImage"] == "quay.io/me/tool:2.1.0"
    assert container["args"] == ["--leader-elect", "--leader-election-id=tool-2-1-0"]
    assert deployment["spec"]["selector"]["matchLabels"] == {"app": "tool", "operatorVersion": "v2"}
    assert annotations["capabilities"] == "Full Lifecycle"
    assert annotations["categories"] == "Database, Monitoring"
    assert annotations["olm.skipRange"] == ">=2.0.0 <2.1.0"
    assert spec["description"] == "# Tool\n"
    assert spec["icon"] == [{"base64data": "iVBORw==", "mediatype": "image/png"}]
    assert [each["displayName"] for each in spec["customresourcedefinitions"]["owned"]] == [
        "A tool",
        "A tool",
    ]
    assert yaml.load(made.files["manifests/settings-2-1-0_v1_configmap.yaml"])["data"]["version"] == "v2.1.0"
    assert (
        yaml.load(made.files["manifests/webhook-service-2-1-0_v1_service.yaml"])["spec"]["type"]
        == "ClusterIP"
    )
    assert made.files["metadata/dependencies.yaml"] == b"dependencies: []\n"
    assert made.labels["operators.operatorframework.io.bundle.channels.v1"] == "fast-v2,stable-v2"


def test_neither_examples_nor_crds_carry_anything_of_one_version() -> None:
    made = bundle()
    crd = yaml.load(made.files["manifests/tools.example.com_tools.yaml"])
    assert "labels" not in crd["metadata"]
    assert crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["name"] == "webhook-service-2-1-0"
    assert '"name": "sample"' in yaml.load(made.files[CSV])["metadata"]["annotations"]["alm-examples"]


def test_a_folder_with_a_kustomization_is_built() -> None:
    made = bundle(HEAD, **{"config/kustomization.yaml": b"resources: [all.yaml]\nnamePrefix: my-\n"})
    assert "manifests/my-settings_v1_configmap.yaml" in made.files


def test_a_base_csv_keeps_what_an_author_wrote() -> None:
    base = b"""
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: x}
spec: {description: Mine}
"""
    made = project.bundle(parsed(HEAD + "baseCSV: base.yaml\n"), {**FILES, "base.yaml": base}, now=NOW)
    assert yaml.load(made.files[CSV])["spec"]["description"] == "Mine"


def test_a_suffix_without_selector_labels_is_reported() -> None:
    made = bundle(HEAD + "overlay: {nameSuffix: -x}\n")
    assert [finding.rule for finding in made.findings if finding.severity == "warning"] == [
        "shared-selectors"
    ]


def test_an_operator_image_that_nothing_uses_is_an_error_that_names_the_images_there_are() -> None:
    made = bundle(HEAD + "images: {operator: quay.io/me/tool, placeholder: other}\n")
    (found,) = [finding for finding in made.findings if finding.rule == "image-not-used"]
    assert str(found).startswith("podium.yaml:5: error: ")
    assert "busybox, controller:latest" in found.message


@pytest.mark.parametrize(
    "image",
    ["quay.io/me/tool:2.1.0", f"quay.io/me/tool@sha256:{'0' * 64}", f"quay.io/me/tool:x@sha256:{'0' * 64}"],
)
def test_manifests_may_name_the_operator_image_themselves(image: str) -> None:
    manifests = FILES["config/all.yaml"].replace(b"controller:latest", image.encode())
    made = bundle(HEAD + "images: {operator: quay.io/me/tool}\n", **{"config/all.yaml": manifests})
    assert not failed(made.findings)
    assert image in made.images


def test_manifests_that_cannot_be_read_are_reported_before_any_patch_misses_its_target() -> None:
    broken = b"apiVersion: apps/v1\nkind: Deployment\n  metadata: {\n"
    with pytest.raises(ProjectError) as caught:
        project.bundle(parsed(), {"config/all.yaml": broken, "config/b.yaml": b"- a\n"}, now=NOW)
    assert [(f.rule, str(f.place)) for f in caught.value.findings] == [
        ("unreadable-manifest", "config/all.yaml:3"),
        ("not-an-object", "config/b.yaml:1"),
    ]


@pytest.mark.parametrize("there", [{}, {"cfg/README.md": b"x"}, {"cfg/a.yaml": b"# nothing\n"}])
def test_a_folder_without_manifests_is_named_with_the_line_that_names_it(there: dict[str, bytes]) -> None:
    with pytest.raises(ProjectError) as caught:
        project.bundle(parsed(HEAD + "manifests: cfg\n"), there, now=NOW)
    (found,) = caught.value.findings
    assert "the folder cfg holds no manifests (manifests: in podium.yaml:5)" in found.message
    with pytest.raises(ProjectError, match="the folder config holds no manifests; name another"):
        project.bundle(parsed(HEAD), there, now=NOW)


def test_a_patch_for_nothing_lists_what_there_is() -> None:
    text = HEAD + "overlay: {patches: [{target: {kind: Deploymnt, name: manager}, set: ['.a = 1']}]}\n"
    with pytest.raises(OverlayError) as caught:
        bundle(text)
    assert "Deployment/manager" in str(caught.value)
    assert str(caught.value).startswith(
        "podium.yaml:5: the patch is for Deploymnt manager, but there is no such"
    )
    assert str(caught.value).count("/") <= 6


@pytest.mark.parametrize("overlaid", ["", ", namespace: elsewhere"])
def test_services_and_accounts_are_found_by_name_whatever_namespace_is_written(overlaid: str) -> None:
    manifests = b"\n---\n".join(
        part if b"subjects" in part or b"service: " in part else part.replace(b", namespace: system", b"")
        for part in FILES["config/all.yaml"].split(b"\n---\n")
    ).replace(b"  namespace: system\n", b"")
    text = HEAD + f"overlay: {{namePrefix: my-, selectorLabels: {{a: b}}{overlaid}}}\n"
    made = bundle(text, **{"config/all.yaml": manifests})
    assert not failed(made.findings)
    spec = yaml.load(made.files[CSV])["spec"]
    assert {each["deploymentName"] for each in spec["webhookdefinitions"]} == {"my-manager"}
    assert len(spec["webhookdefinitions"]) == 3
    accounts = {each["serviceAccountName"] for each in spec["install"]["spec"]["clusterPermissions"]}
    assert accounts == {"my-manager"}


def test_how_to_publish_can_be_said_in_the_file() -> None:
    assert (parsed(HEAD).compat, parsed(HEAD).use_image_digests) == ("head", False)
    made = parsed(HEAD + 'catalog: {compat: "1.51"}\nuseImageDigests: true\n')
    assert (made.compat, made.use_image_digests) == ("1.51", True)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "displayname: X",
            "error: displayname: there is no field `displayname` here; did you mean `displayName`?",
        ),
        (
            "images: {operater: quay.io/a/b}",
            "images.operater: there is no field `operater` here; did you mean `operator`?",
        ),
        ("something: X", "there is no field `something` here; known are"),
        (
            "channels: [stabel]",
            "channels.0: must be candidate, fast or stable, not 'stabel'; did you mean `stable`?",
        ),
        (
            "installModes: [Everywhere]",
            "must be OwnNamespace, SingleNamespace, MultiNamespace or AllNamespaces",
        ),
        ("minKubeVersion: 1.30", 'versions have three parts and are text: write minKubeVersion: "1.30.0"'),
        ("minKubeVersion: v1.28.0", "drop the v: 1.28.0"),
        ("minKubeVersion: '1.28'", "a version has three parts: write 1.28.0"),
        ("maturity: 1.10", 'must be a text; put it in quotes: "1.10"'),
        ("displayName: true", 'must be a text; put it in quotes: "true"'),
        ("useImageDigests: 'yes'", "must be true or false"),
        ("catalog: {compat: 1.60}", 'must be a text; put it in quotes: "1.60"'),
        ("catalog: {compat: newest}", "'newest' is no release of opm: write head, or one such as \"1.51\""),
        ("keywords: tool", "keywords: must be a list of texts"),
        ("provider: me", "provider: must be a mapping"),
        ("maintainers: [{email: a}]", "`name` is missing"),
        ("images: {operator: 'quay.io/a/b:1'}", "must have no tag or digest: its tag is the version"),
        ("images: {operator: tytn/operator}", "write the whole name, docker.io/tytn/operator"),
        ("images: {operator: 'A B'}", "is no image"),
        ("signing: cosign", "must be none, not 'cosign'"),
        (
            "description: ${VERSION}",
            "there is no ${VERSION}: only ${version}, ${version.major}, ${version.dashed}",
        ),
        ("overlay: {patches: [{set: ['.a = 1']}]}", "overlay.patches.0.target: say what to change"),
        ("overlay: {patches: [{target: {kind: X}}]}", "a patch needs one of `set`, `patch` and `file`"),
        ("overlay: {patches: [{target: {kind: X}, set: ['nonsense']}]}", "cannot read 'nonsense'"),
        (
            "overlay: {patches: [{target: {kind: X}, file: gone.yaml}]}",
            "there is no gone.yaml in the project",
        ),
        ("overlay: {patches: [{patch: '[1'}]}", "it is no YAML"),
        ("overlay: {patches: [{target: {kind: X}, file: broken.yaml}]}", "broken.yaml is no YAML: "),
        ("overlay: {patches: [{target: {kind: X}, file: icon.png}]}", "icon.png is no YAML: "),
        ("overlay: {patches: [{patch: [{op: add}]}]}", "a JSON patch needs a target"),
        ("overlay: {patches: [{target: {knid: X}, set: ['.a = 1']}]}", "did you mean `kind`?"),
        ("overlay: {images: [{newTag: a}]}", "`name` is missing: the image's name in the manifests"),
    ],
)
def test_a_mistake_says_where_it_is_and_what_to_do(line: str, expected: str) -> None:
    (found,) = problems(f"{HEAD}{line}\n")
    assert expected in found
    assert found.startswith("podium.yaml:5: ")


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ('"2.1"', "a version has three parts: write 2.1.0"),
        ("1.10", 'versions have three parts and are text: write version: "1.10.0"'),
        ("1.10 # soon", 'write version: "1.10.0"'),
        ("3", 'write version: "3.0.0"'),
        ("v2.1.0", "drop the v: 2.1.0"),
        ("v2.1", "drop the v: 2.1.0"),
        ("2.1.0+7", "build metadata"),
        ("2.01.0", "is no semantic version"),
        ("two", "is no semantic version"),
        ("[1]", "must be a text"),
    ],
)
def test_the_version_must_serve_as_a_tag_and_as_a_semantic_version(version: str, expected: str) -> None:
    (found,) = problems(HEAD.replace("2.1.0", version))
    assert expected in found
    assert found.startswith("podium.yaml:4: ")


def test_all_mistakes_are_reported_at_once() -> None:
    found = problems("kind: Projekt\nname: Not_A_Name\nchanels: [stable]\n")
    assert len(found) == 5
    assert any("`version` is missing" in each for each in found)
    assert any("apiVersion" in each for each in found)


@pytest.mark.parametrize("text", ["", "[]", "name: a\nb: [", "text", "a: b\n  c: d\n", "x" * (257 << 10)])
def test_a_file_that_is_no_project_is_one_error(text: str) -> None:
    assert len(problems(text)) == 1


def test_a_dollar_can_be_written() -> None:
    assert (
        parsed(HEAD + "description: costs $${price} or $(PRICE)\n").details.description
        == "costs ${price} or $(PRICE)"
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("icon: gone.svg", "there is no file gone.svg in the project"),
        ("icon: README.md", "the icon README.md must be one of .svg, .png"),
        ("descriptionFile: gone", "there is no file gone"),
        ("descriptionFile: icon.png", "icon.png is no text in UTF-8"),
        ("baseCSV: gone", "there is no file gone"),
        ("baseCSV: broken.yaml", "broken.yaml is no YAML: "),
        ("baseCSV: README.md", "README.md holds no ClusterServiceVersion"),
        ("dependencies: gone", "there is no file gone"),
        ("properties: gone", "there is no file gone"),
    ],
)
def test_a_file_that_is_not_there_or_of_a_wrong_kind_is_an_error_at_its_field(
    line: str, expected: str
) -> None:
    with pytest.raises(ProjectError) as caught:
        bundle(f"{HEAD}{line}\n")
    (found,) = map(str, caught.value.findings)
    assert expected in found
    assert found.startswith("podium.yaml:5: ")


def test_all_missing_files_are_reported_at_once() -> None:
    with pytest.raises(ProjectError) as caught:
        bundle(HEAD + "icon: a.svg\ndescriptionFile: b\nbaseCSV: c\ndependencies: d\n")
    assert [finding.place.line for finding in caught.value.findings] == [5, 6, 7, 8]


def test_digests_reach_the_bundle() -> None:
    known = dict.fromkeys(bundle().images, "sha256:" + "0" * 64)
    made = project.bundle(parsed(), FILES, now=NOW, digests=known)
    assert all("@sha256:" in image for image in made.images)
