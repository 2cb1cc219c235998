"""What is paid for, a file a plug-in."""
