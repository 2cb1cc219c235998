"""The policy engine: a process of its own that serves our weights token by token.

The only room that imports torch and transformers to serve. It knows no run, no database and no flow; a request carries
messages or token ids, and the answer says which ids were drawn, from which distribution, and by which version.
"""
