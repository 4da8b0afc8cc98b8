"""What tests of images share."""

from __future__ import annotations

import pytest

from harness.tls import Authority


@pytest.fixture(scope="session")
def authority() -> Authority:
    """A certificate authority."""
    return Authority()
