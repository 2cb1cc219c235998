"""Workers: they claim runs, advance them in slices on one event loop per process, and release them."""
