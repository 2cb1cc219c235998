"""Running code that a model wrote, where it can reach nothing. Knows no tool, no store and no run."""
