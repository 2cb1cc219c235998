"""Serve the HTTP API under /api/v1 and the web UI.

This layer translates between HTTP and the services and decides nothing itself.
"""
