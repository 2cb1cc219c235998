"""What answers a role. `engine` is the seam; each engine is a file behind it."""
