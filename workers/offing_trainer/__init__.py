"""The offline trainer. It turns stored rollouts into a better policy version."""
