"""What forwards rows and moves weights; the only room of the trainer that imports torch."""
