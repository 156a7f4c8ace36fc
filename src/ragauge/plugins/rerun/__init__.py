"""`rerun=<run id>`: a logged run again; what is different here, and its metrics against the new ones."""
