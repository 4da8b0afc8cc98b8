"""Who may do what: certificates, authentication, RBAC authorization and the review kinds.

Everything here is a library that the request handlers call; nothing here listens, stores or schedules. What
a module needs from the store is a small Protocol next to its consumer (`rbac.RoleReader`,
`tokens.BoundObjects`), read synchronously because the store answers from memory. A request that is refused
is an `errors.StatusError`, worded as clients expect.

Read `identity.Identity` first, then `authorization.Attributes`: the two values every decision is made from.
"""
