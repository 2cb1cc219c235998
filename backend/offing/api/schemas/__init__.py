"""API schemas under /api/v1. The types of the web UI are generated from these."""
