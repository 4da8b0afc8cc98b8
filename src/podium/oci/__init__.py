"""Images and their contents: references, registries, layouts on disk, building, copying, safe unpacking.

Whatever comes from outside is checked: every manifest and blob against the digest and size that named it,
every archive member against limits before a byte of it is kept. A registry and a layout are both a
`store.Store`, so what works on one works on the other. Read `store` first. What an image means (a bundle, a
catalog) is not known here.
"""
