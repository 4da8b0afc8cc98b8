"""The embedded Kubernetes API server: one process, one event loop, one SQLite file.

`server.Server` is the door. A request goes through `http` (who, may they), `endpoints` (which verb), then
`reading` and `watching`, or `mutations` and `objects`, down to `store`. What is served is data: `registry`
rows made from the table of facts or from CustomResourceDefinitions. `loops` keeps the API's own promises
(garbage collection, namespaces, definitions). Nothing here pretends to run containers: that is
`podium.simulator`, a client like any other.
"""
