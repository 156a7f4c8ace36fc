"""Config group `trainer`: networks tuned on topics and their evidence, and the predictor fitted on many runs."""
