"""The offline trainer: stored rollouts in, a better policy version out."""
