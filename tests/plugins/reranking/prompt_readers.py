"""The plug-in's prompts, for tests/llms/test_prompts.py: what reads the example of each."""

from __future__ import annotations

from typing import Any

from ragauge.plugins.reranking.llm import permutation

READ: dict[str, Any] = {"reranking/rerank": lambda text: permutation(text, 3)}
AS_THEY_ARE: set[str] = set()
UNSAID: set[str] = set()
