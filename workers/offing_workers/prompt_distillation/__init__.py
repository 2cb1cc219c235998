"""Distillation: rated runs become a prompt library, a policy version made of text. No model training."""
