"""A compressor that asks a real server over HTTP: foreseen, counted, and not asked twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_chat_sweep import sweep
from test_sweep import job_records, sweep_folders

from chat_server import ChatServer
from scripted_chat import unframed

JOB = ["retriever=bm25", "n_tokens=100", "n_grid=[100]", "dataset.limit=5"]
COMPRESSED = [*JOB, "compressor=llm", "compressor.depth=2", "expander=document"]


def reply(prompt: str) -> str:
    """The first sentence of a passage, or nothing, by its length; an answer; a verdict."""
    if "Copy from the passage" not in prompt:
        return '{"label": 3, "reason": "why not"}' if "label" in prompt else "An answer."
    passage = unframed(prompt).split("Passage:\n")[1].split("\n\nWhat helps")[0]
    return "NONE" if len(passage) % 5 == 0 else passage.split(". ")[0]


@pytest.mark.slow
def test_its_calls_are_foreseen_counted_and_made_once(tmp_path: Path) -> None:
    with ChatServer(reply) as server:
        foreseen = sweep(tmp_path, server, *COMPRESSED, "dry_run=true")
        assert foreseen.returncode == 0, foreseen.stderr
        assert "compressor: 10 calls (0 paid before)" in foreseen.stdout
        assert not server.whole
        for asked in (10, 0):
            done = sweep(tmp_path, server, *COMPRESSED)
            assert done.returncode == 0, done.stderr
            [record] = job_records(sweep_folders(tmp_path)[-1])
            values = record["metrics"]
            assert values["compressor_llm_calls"] == asked
            assert values["compressor_failed"] == 0
            assert 0 < values["compressor_ratio"] < 1
            assert (values["compressor_cost_usd"] > 0) == (asked > 0)
            assert ("compressed" in record["stages_made"]) == (asked > 0)
            assert sum(server.whole.values()) == 10 + 5 + 5  # and five answers and verdicts
