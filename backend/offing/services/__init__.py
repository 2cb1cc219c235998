"""Use cases of the API, the command line and the workers. Each opens its own transactions."""
