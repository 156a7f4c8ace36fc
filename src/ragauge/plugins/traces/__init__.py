"""MLflow's traces as dataset, retriever and llm: windows, rows and shapes (docs/traces.md)."""
