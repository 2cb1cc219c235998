"""Training with other trainers: exported steps with advantages and weights, and their readers."""
