"""Texts the way Go programs read and write them: YAML, JSON, durations and schedules now, versions later."""
