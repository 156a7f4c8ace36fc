"""The plug-in's prompts, for tests/llms/test_prompts.py: what reads the example of each."""

from __future__ import annotations

from ragauge.plugins.synthesis import checks, writing

READ = {
    "synthesis/answered": checks._flag("answered"),
    "synthesis/comparison": writing._reader("comparison"),
    "synthesis/follows": checks._flag("follows"),
    "synthesis/one_hop": writing._reader("one_hop"),
    "synthesis/same_answer": checks._flag("same"),
    "synthesis/two_hop": writing._reader("two_hop"),
    "synthesis/unanswerable": writing._reader("unanswerable"),
}
AS_THEY_ARE = {"synthesis/closed_book"}
UNSAID = AS_THEY_ARE
