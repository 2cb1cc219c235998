"""Reaching the web: which addresses may be asked, and how a page is fetched. Knows no tool, no store and no graph."""
