"""Names of the tools that the roles without a model choose from."""

SEARCH_LIBRARY, READ_SOURCE, CALCULATE = "search_library", "read_source", "calculate"
SEARCH_WEB, FETCH_PAGE = "web_search", "fetch_page"
