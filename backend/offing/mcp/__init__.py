"""Third-party tools through the Model Context Protocol over HTTP: allowed servers, and a client that calls them.

Servers are never started as programs. Only this package uses `mcp`, which is an extra; importing this
package does not import it.
"""
