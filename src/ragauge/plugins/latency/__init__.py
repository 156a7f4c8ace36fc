"""`measure_latency=true`: how long a question takes from end to end, sent alone."""
