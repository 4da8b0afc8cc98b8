"""What a door offers as one call: projects on disk, images of bundles and catalogs, templates, publishing.

Read `publish` first: it uses all the others.
"""
