"""From a document's bytes to text, passages and terms. Pure, but for the child processes that shield us from bad files.

Knows no database, no tenant and no tool.
"""
