"""`llm.repeat`, `judge.per_answer`: the variance between topics, answers and verdicts, and answer stability."""
