"""Sandbox drivers with one module per technique."""
