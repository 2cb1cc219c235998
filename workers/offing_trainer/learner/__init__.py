"""What forwards rows and moves weights; the only room of the trainer that imports torch."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch is loaded: its threads spin on a shared machine
