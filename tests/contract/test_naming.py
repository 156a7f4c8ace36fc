"""Names of systems by hand: every swept value in its short form, no two alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragauge.contract.errors import ConfigError
from ragauge.contract.naming import given_names, renamed, short_forms, system_names


@pytest.mark.parametrize(
    ("key", "values", "forms"),
    [
        ("retriever", ["bm25", "sim"], ["bm25", "sim"]),
        ("retriever.path", ["runs/fusion.trec", "runs/bm25.trec"], ["fusion", "bm25"]),
        ("retriever.path", ["a/run.trec", "b/run.trec"], ["a/run.trec", "b/run.trec"]),
        ("retriever.path", ["run.trec", "run.jsonl"], ["run.trec", "run.jsonl"]),
        ("retriever.path", ["'runs/my run.trec'", "b.trec"], ["path='runs/my run.trec'", "path=b.trec"]),
        ("llm.prompt", ["prompts/short.txt", "prompts/long.txt"], ["short", "long"]),
        ("chunker.size", ["64", "128"], ["64 tokens", "128 tokens"]),
        ("retriever.top_k", ["5", "50"], ["top_k=5", "top_k=50"]),
        ("+gate.ir_score", ["0.5", "0.6"], ["ir_score=0.5", "ir_score=0.6"]),
        ("embedder.model", ["BAAI/bge-small-en-v1.5", "intfloat/e5-small"], ["bge-small-en-v1.5", "e5-small"]),
        ("embedder.model", ["a/e5", "b/e5"], ["a/e5", "b/e5"]),
        ("judge.probes", ["true", "false"], ["probes=true", "probes=false"]),
        ("retriever.fusion", ["rrf", "'wsum'"], ["rrf", "wsum"]),
    ],
)
def test_a_value_stands_in_its_short_form(key: str, values: list[str], forms: list[str]) -> None:
    assert short_forms(key, values) == dict(zip(values, forms, strict=True))


def test_two_keys_that_end_alike_stand_whole() -> None:
    jobs = [[f"llm.chat.model={a}", f"judge.chat.model={b}"] for a, b in (("x", "y"), ("y", "x"))]
    assert system_names(jobs) == [
        "llm.chat.model=x · judge.chat.model=y", "llm.chat.model=y · judge.chat.model=x",
    ]  # fmt: skip


def test_names_are_a_mapping_or_a_file_of_one(tmp_path: Path) -> None:
    file = tmp_path / "names.yaml"
    file.write_text("bm25: By  words\n64 tokens: Small\n", encoding="utf-8")
    assert given_names(str(file)) == {"bm25": "By words", "64 tokens": "Small"}
    assert given_names(None) == {}
    assert renamed(["bm25", "sim"], {"bm25": "By words", "other": "x"}) == ["By words", "sim"]
    assert renamed(["bm25", "bm25"], {"bm25": "x"}) == ["x", "x"]  # two budgets of one system
    with pytest.raises(ConfigError, match="names: 'bm25' and 'sim' would both be called 'sim'"):
        renamed(["bm25", "sim"], {"bm25": "sim"})
    for wrong in (["bm25"], {"bm25": " "}, 3):
        with pytest.raises(ConfigError, match="allowed is a name for each system"):
            given_names(wrong)
    with pytest.raises(ConfigError, match=r"names=no.yaml: .*No such file"):
        given_names("no.yaml")
