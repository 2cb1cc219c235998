"""What runs leave behind, written down once, so that a rebuilding of what advances them can be shown to change nothing.

`recorded/` holds a file a case: the trace of the undisturbed run, and how the trace differs when the worker is killed
before or after each of its transactions. `python -m tests.traces` records, `--check` compares.
"""
