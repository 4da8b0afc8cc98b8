"""A catalog served over gRPC as `api.Registry`, for clusters that run OLM v0.

Needs the extra `podium[grpc]`. Read `queries` first.
"""
