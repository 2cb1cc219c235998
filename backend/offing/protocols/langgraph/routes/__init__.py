"""Routes of LangGraph's server API, one module per resource."""
