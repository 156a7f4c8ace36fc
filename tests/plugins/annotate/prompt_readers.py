"""The plug-in's prompts, for tests/llms/test_prompts.py: what reads the example of each."""

from __future__ import annotations

from typing import Any

from ragauge.plugins.annotate import grading

READ: dict[str, Any] = {"annotate/grade": grading.read_verdict}
AS_THEY_ARE: set[str] = set()
UNSAID: set[str] = set()
