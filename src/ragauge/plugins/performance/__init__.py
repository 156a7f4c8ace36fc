"""Query performance prediction: predicts the answer from ranking and context, without evidence."""
