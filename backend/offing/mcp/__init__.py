"""Other people's tools, by the Model Context Protocol over HTTP: whom the operator allows, and how they are asked.

Nothing of it is started as a program. The only home of the package `mcp`, which is an extra; importing this room does
not import it.
"""
