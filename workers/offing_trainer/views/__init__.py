"""Which stored rows a policy is trained on, a file a plug-in."""
