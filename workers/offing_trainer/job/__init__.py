"""Training jobs: stored rollouts in, a registered policy version out, every step committed once."""
