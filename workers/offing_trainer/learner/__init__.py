"""The learner forwards rows and updates weights. It is the only package of the trainer with torch."""

from offing import environment

# set before torch is loaded, since its threads would busy-wait on a shared machine
environment.set_default("OMP_WAIT_POLICY", "PASSIVE")
