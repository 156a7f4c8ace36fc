"""What a terminal calls; thin."""
