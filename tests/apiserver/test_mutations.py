from __future__ import annotations

from harness.embedded import EmbeddedControlPlane
from harness.plain import Plain

DEFAULT = "/api/v1/namespaces/default"
JSON_PATCH = {"Content-Type": "application/json-patch+json"}


def test_a_json_patch_that_does_not_apply_says_why_as_kubectl_shows_it() -> None:
    with EmbeddedControlPlane(simulate=False) as plane:
        plain = Plain(plane.kubeconfig)
        patch = [{"op": "test", "path": "/status/phase", "value": "Gone"}]
        refused = plain.request("PATCH", DEFAULT, patch, headers=JSON_PATCH)
    assert refused.status == 422
    (cause,) = refused.json()["details"]["causes"]
    assert cause == {"field": "patch", "message": "testing value /status/phase failed: test failed"}
