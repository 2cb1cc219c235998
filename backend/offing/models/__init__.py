"""Engines that answer roles. `engine` has the interface, and each engine has its own module."""
