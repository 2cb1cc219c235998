"""Learning without weights: judged runs become a prompt library, a policy version of text. No package for weights."""
