"""`rerun=<run id>`: repeats a logged run, and reports differences here and in its metrics."""
