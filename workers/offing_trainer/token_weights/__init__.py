"""Token weights. Each module defines one plug-in or several related ones; every averaging rule is one."""
