"""`llm.repeat`, `judge.per_answer`: what varies between topics, answers and verdicts, and how stable answers are."""
