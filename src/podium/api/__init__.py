"""Words of the Kubernetes API that every room shares: kinds, names, times, conditions, selectors."""
