"""A training as an experiment: config in, MLflow run out, the model registered."""
