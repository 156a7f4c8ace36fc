"""`ragauge sample` draws topics to answer by strata of predicted P(right)."""
