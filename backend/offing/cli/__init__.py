"""Command line interface.

The modules parse arguments, call services and print results. Heavy imports happen inside the
commands that need them.
"""
