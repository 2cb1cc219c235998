"""Search engines of the web, a file each: how one is asked, and how its answer is read. None does the asking."""
