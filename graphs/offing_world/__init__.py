"""A world of synthetic knowledge that serves as training environment, evaluation set and demo.

It registers itself as an environment, as any package can: see `environment.py`. The platform does not import it.
"""
