"""Routes with one module per resource. Each reads the request, calls a service and shapes the response."""
