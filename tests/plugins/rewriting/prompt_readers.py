"""The plug-in's prompts, for tests/llms/test_prompts.py: what reads the example of each."""

from __future__ import annotations

from typing import Any

from ragauge.plugins.rewriting.hyde import HyDE
from ragauge.retrieval.queries import parse_queries

READ: dict[str, Any] = {
    "rewriting/decompose": parse_queries,
    "rewriting/hyde_several": HyDE(n_passages=2)._passages,
    "rewriting/rag_fusion": parse_queries,
}
AS_THEY_ARE = {"rewriting/hyde"}
UNSAID = {*READ, *AS_THEY_ARE}
