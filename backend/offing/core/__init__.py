"""The vocabulary and the rules of Offing: frozen values and pure functions. Nothing here does I/O."""
