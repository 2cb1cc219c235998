"""Workers: they claim runs, advance them slice by slice on one event loop a process, and hand them back."""
