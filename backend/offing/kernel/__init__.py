"""What a run is executed by, over exchangeable stores."""
