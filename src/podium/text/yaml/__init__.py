"""YAML the way Kubernetes reads and writes it: by the rules, and with the bytes, of sigs.k8s.io/yaml.

Reading: `reader` gives each document to `blocks` (fast, for what tools write) and, where that is not sure, to
`exact` (libyaml's events, any YAML). Both take scalars by `scalars`; `places` finds the line of a path.
Writing: `writer`, with the key order of `natural`. Start with `reader.documents` and `writer.dump`.
"""

from __future__ import annotations

from podium.text.yaml.document import Document
from podium.text.yaml.errors import YAMLError
from podium.text.yaml.places import locate
from podium.text.yaml.reader import documents, load, load_all
from podium.text.yaml.writer import dump, dump_all

__all__ = ["Document", "YAMLError", "documents", "dump", "dump_all", "load", "load_all", "locate"]
