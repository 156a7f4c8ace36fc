"""Optional parts: a folder per subject, found by entry points like another package (docs/rooms.md)."""
