"""Processes: what runs together in one, where it keeps its data, and how it is found and stopped.

`instance` is about the data directory and the process that holds it; `controlplane` is the embedded control
plane itself, the API server with the controllers that live beside it.
"""
