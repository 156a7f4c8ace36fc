"""Config group `trainer`: networks that are tuned on topics and their evidence, and the predictor of many runs."""
