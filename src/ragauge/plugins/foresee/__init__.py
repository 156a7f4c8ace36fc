"""`ragauge foresee`: the classes of unjudged answers, from a predictor without evidence."""
