"""Podium: an operator lifecycle manager for Kubernetes.

The package is a house with floors (see docs/architecture.md): a room imports only from floors below
its own, and import-linter holds the rule.
"""

__version__ = "0.1.0"
