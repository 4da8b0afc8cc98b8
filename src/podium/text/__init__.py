"""Texts the way Go programs read and write them, so that their bytes and their mistakes are the same.

YAML (`yaml`) and JSON (`gojson`), versions with two kinds of ranges (`semver`, `ranges`, `constraints`),
image references, durations, schedules, quoting, proxy settings, and what a picture is. Nothing here knows
what the texts are about. Read `yaml` first.
"""
