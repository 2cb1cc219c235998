"""Run code that a model wrote in a sandbox that isolates it from the machine."""
