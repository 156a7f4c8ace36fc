"""A run again, from its MLflow id: what it was, what is different here, its metrics against the new ones."""
