"""Routes, one file a noun, all thin: they read the request, call a service, and shape the answer."""
