"""Parts that not every job needs: a folder for each subject, found by entry points as another package is
(docs/rooms.md)."""
