"""`ragauge foresee`: the classes of answers that nobody judged, from a predictor that reads no evidence."""
