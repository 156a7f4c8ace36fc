"""`measure=semantic`: compares evidence and contexts by the embedder (config groups `measure` and `answers`)."""
