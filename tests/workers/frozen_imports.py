"""What is loaded so far is never scanned for garbage again, here and in all that are forked from here.

A scan takes a forked process a third of a second and a copy of each page that it touches.
"""

import gc

gc.collect()
gc.freeze()
