"""What is held beside the surrogate, a file a plug-in."""
