"""A stand-in for nodes and workload controllers, as controllers on `podium.kube`.

No container ever runs: Pods are bound, become ready, finish and fail because their status says so. The node
half (nodes, scheduler, kubelet, volume provisioner) also serves a real control plane, which brings its own
workload controllers; the workload half is what kube-controller-manager does for Deployments, Jobs, Services
and the like.

Every decision is a pure function in a module of its own: observed objects in, a `plan.Plan` of writes out.
`world.World` reads the caches and carries plans out. Read `simulation.Simulator` first, then `kubelet`.
"""

from __future__ import annotations

from podium.simulator.simulation import Simulator

__all__ = ["Simulator"]
