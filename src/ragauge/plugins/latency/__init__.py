"""`measure_latency=true`: the end-to-end time of a question sent alone."""
