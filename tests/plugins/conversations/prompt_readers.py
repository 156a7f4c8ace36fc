"""The plug-in's prompts, for tests/llms/test_prompts.py: what reads the example of each."""

from __future__ import annotations

from typing import Any

from ragauge.retrieval.queries import parse_queries

READ: dict[str, Any] = {"conversations/contextual": parse_queries}
AS_THEY_ARE: set[str] = set()
UNSAID: set[str] = set()
