"""registry+v1 bundles: read, checked, generated from plain manifests, and converted to cluster objects.

All functions are pure: a bundle comes in as a mapping of paths to bytes and leaves as values. Read `model`
first. `read` makes a bundle of files and `checks` says what is wrong with them; `project` (the author's
file), `overlay` (changes to manifests) and `generate` make the files; `convert` makes what a cluster gets.
"""
