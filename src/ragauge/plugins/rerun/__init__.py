"""`rerun=<run id>`: repeats a logged run, and prints which packages and metrics differ."""
