"""The plug-in's prompts, for tests/llms/test_prompts.py: what reads the example of each."""

from __future__ import annotations

from ragauge.plugins.benchmarks.crag_judge import parse_accuracy

READ = {"benchmarks/judge_crag": parse_accuracy}
AS_THEY_ARE: set[str] = set()
UNSAID: set[str] = set()
