"""The vocabulary and the rules of Offing as frozen values and pure functions.

Nothing in this package does I/O.
"""
