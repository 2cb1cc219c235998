"""Training jobs. They turn stored rollouts into a registered policy version, step by step."""
