"""`llm.submit=batch`: sends all calls of a stage as one provider batch, at the batch price."""
