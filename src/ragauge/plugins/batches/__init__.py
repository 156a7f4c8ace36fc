"""`llm.submit=batch`: all calls of a stage as one batch of the provider, at its price for batches."""
