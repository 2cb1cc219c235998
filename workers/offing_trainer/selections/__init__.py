"""Which groups and rows are trained, a file a plug-in."""
