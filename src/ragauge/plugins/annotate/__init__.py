"""Evidence that is made: pooled passages, graded and quoted by an evaluator, corrected by people (docs/annotate.md)."""
