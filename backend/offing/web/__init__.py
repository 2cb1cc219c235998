"""Access to the web: allowed addresses, fetching pages and searching."""
