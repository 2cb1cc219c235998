"""Use cases: what the API, the command line and the workers do, said once. Each opens its own transactions."""
