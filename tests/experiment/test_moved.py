"""A logged configuration whose classes lie elsewhere today."""

from __future__ import annotations

import pytest

from processes import ROOT
from ragauge.contract.errors import ConfigError
from ragauge.experiment.setup.moved import name_as_today

CONF = ROOT / "conf"
TAGS = {"retriever": "bm25", "llm": "extractive", "ragauge_version": "0.1.0", "git_commit": "c0ffee" * 7}


def test_a_class_that_moved_is_named_as_today_and_told() -> None:
    config = {"retriever": {"_target_": "ragauge.retrievers.BM25", "top_k": 3}, "answers": {}}
    (line,) = name_as_today(config, TAGS, CONF)
    assert config["retriever"] == {"_target_": "ragauge.retrieval.retrievers.BM25", "top_k": 3}
    assert line == (
        "retriever._target_: ragauge.retrievers.BM25 of ragauge 0.1.0 (c0ffeec0ffee) is "
        "ragauge.retrieval.retrievers.BM25 today"
    )


def test_answer_measures_move_by_their_names() -> None:
    config = {"answers": {"em": {"_target_": "ragauge.old.ExactMatch"}}}
    assert len(name_as_today(config, TAGS, CONF)) == 1
    assert config["answers"]["em"]["_target_"].startswith("ragauge.measures.answers.")


@pytest.mark.parametrize(
    ("option", "target"),
    [
        ("bm25", "ragauge.retrievers.Gone"),
        ("no_such_option", "ragauge.retrievers.BM25"),
        ("sim", "ragauge.x.BM25"),
    ],
)
def test_a_class_that_is_no_more_says_which_version_made_the_run(option: str, target: str) -> None:
    with pytest.raises(ConfigError, match=rf"^retriever\._target_={target} is no .* made by ragauge 0\.1\.0"):
        name_as_today({"retriever": {"_target_": target}}, {**TAGS, "retriever": option}, CONF)


def test_what_is_there_and_what_others_made_stays() -> None:
    config = {
        "retriever": {"_target_": "ragauge.retrieval.retrievers.BM25"},
        "llm": {"_target_": "their.package.LLM"},
    }
    assert name_as_today(config, TAGS, CONF) == []
    assert config["llm"]["_target_"] == "their.package.LLM"
