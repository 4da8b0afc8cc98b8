"""Controllers inside the server: what kube-controller-manager does to keep the API's own promises.

Garbage collection, namespace deletion, default service accounts, aggregated roles, CustomResourceDefinition
conditions. They watch the store directly and write through `Objects`, like any client would. Simulated
workloads are not here: those are `podium.simulator`, on the client side of the API.
"""
