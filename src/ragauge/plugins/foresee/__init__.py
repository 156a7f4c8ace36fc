"""`ragauge foresee`: predicts the classes of unjudged answers, without evidence."""
