"""`ragauge sample`: which topics to answer, drawn by what a predictor says of their answers."""
