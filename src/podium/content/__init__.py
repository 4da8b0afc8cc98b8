"""Catalogs and bundles wherever they lie: a directory, a file, a layout on disk, an image in a registry.

`sources` opens what a user names and tells which of the two it is; the rooms below know the formats and the
transports. Read `sources` first.
"""
