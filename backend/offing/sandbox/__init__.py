"""Run code that a model wrote in a sandbox from which it can reach nothing."""
