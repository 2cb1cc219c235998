"""Access to Postgres.

Only this package reads and writes rows, and it returns them as typed values.
"""
