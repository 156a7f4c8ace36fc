"""Query performance prediction: what ranking and context say of the answer where no evidence is known."""
