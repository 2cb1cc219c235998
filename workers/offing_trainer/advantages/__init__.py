"""Who is credited with how much: base advantages and what modifies them; a file a plug-in or a pair."""
