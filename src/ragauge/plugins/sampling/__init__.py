"""`ragauge sample` draws the topics to answer by strata of their predicted P(right)."""
