"""Use cases of the API, the command line and the workers. Each function opens its own transactions."""
