"""A configuration: what it may hold, where it comes from, and which parts of it are trusted."""
