"""MLflow's traces as dataset, retriever and llm: a window of them, their rows and shapes (docs/traces.md)."""
