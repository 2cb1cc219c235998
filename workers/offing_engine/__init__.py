"""Policy engine: a process that serves policy weights token by token.

It is the only package that imports torch and transformers for inference, and uses no database. A
request carries messages or token ids. The response says which ids were sampled, from which
distribution, and by which version.
"""
