"""`llm=`, `judge=` and `evaluator=` by the name of a provider or server: configs, and no code."""
