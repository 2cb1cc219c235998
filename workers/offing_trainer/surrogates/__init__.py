"""What is minimised in place of the return, a file a plug-in or a closely related pair."""
