"""What a Kubernetes object may hold, and how two versions of one are merged.

Facts about built-in kinds, structural schemas of custom ones, CEL rules, the patch formats and
server-side apply. Everything here is pure: values in, values out. Read `shape` first: it is the one
view of a type that merging needs, whichever source it came from.
"""
