"""The plug-in's prompts, for tests/llms/test_prompts.py: what reads the example of each."""

from __future__ import annotations

from typing import Any

from ragauge.plugins.compression.llm import copied_by_number

READ: dict[str, Any] = {"compression/compress_topic": lambda text: copied_by_number(text, 3)}
AS_THEY_ARE = {"compression/compress_passage"}
UNSAID: set[str] = set()
