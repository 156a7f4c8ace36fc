"""MLflow's own pages: traces with scores and costs, evaluation runs, evaluation datasets, scorers."""
