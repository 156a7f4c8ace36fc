"""`llm.repeat`, `judge.per_answer`: the variance between topics, answers and verdicts, and the stability of answers."""
