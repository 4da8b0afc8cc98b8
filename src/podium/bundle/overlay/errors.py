"""The one error of overlays: what cannot be done, where it was asked for, and what to do instead."""

from __future__ import annotations

from podium.api.findings import Place


class OverlayError(ValueError):
    """A change that cannot be made; `place` is where the author asked for it."""

    def __init__(self, message: str, place: Place = Place()) -> None:
        super().__init__(f"{place}: {message}" if place.file else message)
        self.message = message
        self.place = place
