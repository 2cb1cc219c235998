"""What confines code, one module a way to do so. Knows nothing of when it is used, or of how it is tried."""
