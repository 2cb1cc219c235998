"""Extract text, passages and terms from the bytes of documents.

Reading runs in child processes, which isolate this process from malformed files.
"""
