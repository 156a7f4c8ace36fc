"""The plug-in's prompts, for tests/llms/test_prompts.py: what reads the example of each."""

from __future__ import annotations

from typing import Any

from ragauge.plugins.documents import alignment

READ: dict[str, Any] = {"documents/attribute_answer": lambda text: alignment._read(text, 3)}
AS_THEY_ARE: set[str] = set()
UNSAID: set[str] = set()
