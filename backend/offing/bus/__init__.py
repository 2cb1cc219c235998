"""The only room that speaks to Redis. Everything here is a hint: losing all of it loses nothing."""
