"""`measure=semantic`: evidence and contexts by the embedder (config groups `measure` and `answers`)."""
