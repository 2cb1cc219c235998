"""The command line. Parses, calls services, prints; heavy imports happen inside the commands that need them."""
