"""Messages through Redis. All of them are notifications: losing one loses nothing."""
