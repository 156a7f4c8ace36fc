"""Stages make what they made under the same key: small jobs against their stored outputs (tests/golden)."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from golden import record
from golden.jobs import JOBS
from options import option_files
from processes import ROOT, run_fresh
from ragauge.answering import extractive

# Options whose output no small job shows, and why.
NOT_SHOWN = {
    "models": (
        "reranker/cross_encoder retriever/learned_sparse retriever/late_interaction embedder/minilm "
        "embedder/sentence_transformers answers/ares answers/network trainer/encoder trainer/reranker trainer/judge "
        "trainer/foresight trainer/predictor tokenizer/huggingface tokenizer/llama3 answers/context_perplexity "
        "embedder/openai embedder/openai_compatible embedder/llama_cpp"
    ),
    "servers and other people's code": (
        "retriever/service llm/service retriever/function llm/function retriever/langchain retriever/pyterrier "
        "reranker/langchain reranker/pyterrier compressor/langchain chunker/langchain chunker/llama_index "
        "retriever/milvus engine/ray retriever/mlflow_traces llm/mlflow_traces dataset/mlflow_traces dataset/mlflow"
    ),
    "clients of an API whose prompts and replies another option shows": (
        "llm/openai llm/ollama judge/openai judge/ollama evaluator/openai evaluator/ollama evaluator/openai_compatible "
        "llm/anthropic llm/azure llm/bedrock llm/deepseek llm/gemini llm/groq "
        "llm/lm_studio llm/mistral llm/openrouter llm/vllm "
        "judge/anthropic judge/azure judge/bedrock judge/deepseek judge/gemini judge/groq "
        "judge/lm_studio judge/mistral judge/openrouter judge/vllm "
        "evaluator/anthropic evaluator/azure evaluator/bedrock evaluator/deepseek evaluator/gemini evaluator/groq "
        "evaluator/lm_studio evaluator/mistral evaluator/openrouter evaluator/vllm "
        "llm/llama_cpp judge/llama_cpp evaluator/llama_cpp"
    ),
    "files in a format of their own, whose frames the loaders' tests hold by hand": (
        "dataset/2wikimultihopqa dataset/beir dataset/crag dataset/csv dataset/folder dataset/hotpotqa "
        "dataset/huggingface dataset/ir_datasets dataset/mtrag dataset/musique dataset/nq dataset/outcomes "
        "dataset/ragbench dataset/rgb dataset/samples dataset/squad dataset/study dataset/trec dataset/triviaqa "
        "retriever/trec_rag llm/trec_rag judge/recorded retriever/robustness"
    ),
    "several answers to a topic, or several verdicts": "answers/semantic_entropy answers/injection",
}  # fmt: skip


@pytest.mark.parametrize("name", record.names())
def test_a_stage_makes_what_it_made_under_the_same_key(name: str) -> None:
    before, now = record.kept(name), record.own(name, record.recorded(name))
    assert record.changed(before, now) == [], "give the stage, or its component, a new version"
    assert now == before, f"a version, a parameter or a stage is new: python tests/golden/record.py {name}"


def test_every_option_is_shown_by_a_job_or_named_with_the_reason() -> None:
    files = {f"{f.parent.name}/{f.stem}" for f in option_files() if "_target_: ragauge" in f.read_text("utf-8")}
    listed = {name for names in NOT_SHOWN.values() for name in names.split()}
    shown = _shown()
    assert listed & shown == set()
    assert {name for name in files - shown - listed if not name.startswith(("chat/", "hydra/"))} == set()


def _shown() -> set[str]:
    """The options that some job has."""
    usual = yaml.safe_load((ROOT / "conf" / "config.yaml").read_text("utf-8"))["defaults"]
    found = {f"{group}/{option}" for row in usual if isinstance(row, dict) for group, option in row.items()}
    found = {name for name in found if not name.startswith(("embedder/", "optional"))} | {"dataset/jsonl"}
    for overrides in (
        *JOBS.values(),
        ("answers=[usual,contains,em,f1,rouge_l]", "chunker=tokens", "tokenizer=words", "retriever=sim"),
    ):
        for override in overrides:
            group, _, value = override.partition("=")
            options = value[1:-1].split(",") if value.startswith("[") else [value]
            found |= {f"{group}/{option}" for option in options}
    return found


@pytest.fixture
def base() -> list[record.Row]:
    return record.kept("base")


def _with(rows: list[record.Row], stage: str, change: Callable[[record.Row], Any]) -> list[record.Row]:
    changed = copy.deepcopy(rows)
    for row in changed:
        if row["stage"] == stage:
            change(row)
    return changed


def test_another_output_under_the_same_key_is_named(base: list[record.Row]) -> None:
    def lower(row: record.Row) -> None:
        row["frames"]["run"][1][2] = 0.5

    found = record.changed(_with(base, "run", lower), base)
    assert len(found) == 1
    assert found[0].startswith("run: row 1 of run was ")


def test_a_new_version_may_give_another_output_and_so_may_what_reads_it(base: list[record.Row]) -> None:
    before = _with(base, "run", lambda row: row.update(version=0, frames={"run": []}))
    before = _with(before, "answers", lambda row: row.update(frames={"answers": []}))
    assert record.changed(before, base) == []


def test_another_prompt_under_the_same_key_is_named() -> None:
    now = record.kept("llm/openai_compatible")
    before = _with(now, "answers", lambda row: row["asked"].__setitem__(2, "Another prompt."))
    assert [line.split(":")[0] for line in record.changed(before, now)] == ["answers"]


def test_an_edit_of_the_code_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extractive, "LACK_OF_INFORMATION", "No.")
    found = record.changed(record.kept("base"), record.recorded("base"))
    assert [line.partition(":")[0] for line in found] == ["answers"]


BM25 = "ragauge/retrieval/retrievers/bm25.py"


@pytest.mark.slow
def test_a_class_that_moved_finds_what_it_stored(tmp_path: Path, bring_models: Callable[..., None]) -> None:
    """BM25 and the module that chunks move to other modules; a job in the same store makes no stage."""
    job = ["dataset.limit=3", "chunker=tokens", "retriever=bm25", "bootstrap=20", "hydra.run.dir=out"]
    here = tmp_path / "here"
    here.mkdir()
    bring_models(here / ".ragauge")
    first = run_fresh(here, *job)
    assert first.returncode == 0, first.stderr
    assert json.loads((here / "out" / "job.json").read_text())["stages_made"]

    moved = tmp_path / "moved"
    for name in ("src", "conf", "run.py"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, _made(moved) / name)
    package = moved / "src" / "ragauge"
    (package / BM25.removeprefix("ragauge/")).rename(package / "retrieval" / "retrievers" / "elsewhere.py")
    chunkers = package / "retrieval" / "chunkers"
    (chunkers / "_tokens.py").rename(chunkers / "_by_tokens.py")
    for file in [*package.rglob("*.py"), *(moved / "conf").rglob("*.yaml")]:
        text = file.read_text(encoding="utf-8")
        text = text.replace("ragauge.retrieval.retrievers.bm25 ", "ragauge.retrieval.retrievers.elsewhere ")
        text = text.replace("ragauge.retrieval.retrievers.BM25", "ragauge.retrieval.retrievers.elsewhere.BM25")
        text = text.replace("chunkers._tokens ", "chunkers._by_tokens ")
        file.write_text(text, encoding="utf-8")
    again = run_fresh(
        here, *job[:-1], "hydra.run.dir=again", program=str(moved / "run.py"), PYTHONPATH=str(moved / "src")
    )
    assert again.returncode == 0, again.stderr
    assert "retrievers.elsewhere" in (here / "again" / ".hydra" / "config.yaml").read_text()
    assert json.loads((here / "again" / "job.json").read_text())["stages_made"] == []


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder
