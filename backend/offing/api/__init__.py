"""HTTP under /api/v1, and the page. Translates between the wire and the services; decides nothing itself."""
