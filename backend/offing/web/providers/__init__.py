"""Web search engines with one module per engine: how to build a request and how to parse the response."""
