"""Made evidence: pooled passages, graded and quoted by an evaluator, corrected by people (docs/annotate.md)."""
