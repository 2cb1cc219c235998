"""Policy engine: a process that serves policy weights token by token.

It is the only package that imports torch and transformers for inference, and uses no database. A
request has messages or token ids. The response has the sampled ids, their logprobs, and the version
that sampled them.
"""
