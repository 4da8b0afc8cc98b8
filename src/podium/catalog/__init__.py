"""File-based catalogs: read, written with opm's bytes, validated, made from templates, listed, compared.

All functions are pure: files come in as pairs of path and bytes. Read `blobs` first: what a catalog is made
of, kept as bytes. `read` and `write` are its two ends, `properties` what bundles say in it, `outline` its
skeleton of names and edges, `channels` how upgrades go along those. On that stand `validate` (opm's rules),
`lint` (ours), `graph`, `diff`, `listing` and `prune`; `render` and `templates` make catalogs from bundles.
"""
