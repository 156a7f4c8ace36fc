"""The plug-in's prompts, for tests/llms/test_prompts.py: what reads the example of each."""

from __future__ import annotations

from ragauge.plugins.robustness import counterfactual

READ = {"robustness/detect_errors": counterfactual._read}
AS_THEY_ARE: set[str] = set()
UNSAID: set[str] = set()
