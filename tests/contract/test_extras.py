"""What the base of ragauge does without: the packages of extras are blocked here, as if they were not installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import ragauge
from processes import ROOT
from ragauge.contract.errors import ConfigError
from ragauge.contract.extras import EXTRA_OF

ROW = {
    "question": "Who wrote Faust?",
    "contexts": ["Faust is a play by Goethe.", "Goethe lived in Weimar."],
    "answer": "Goethe",
    "reference": "Johann Wolfgang von Goethe",
    "reference_contexts": ["Faust is a play by Goethe."],
}
# Distributions whose module has another name.
DISTRIBUTIONS = {
    "faiss": "faiss-cpu", "llama_index": "llama-index-core", "pyterrier": "python-terrier", "docx": "python-docx",
    "transformers": "sentence-transformers", "langchain_text_splitters": "langchain", "langchain_classic": "langchain",
}  # fmt: skip
JOB = {"dataset.limit": 3, "tracking.uri": None, "bootstrap": 20}


class Blocked:
    """Finds none of the modules that extras bring."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in EXTRA_OF:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """An installation of the base alone, in an empty working directory."""
    for name in [name for name in sys.modules if name.partition(".")[0] in EXTRA_OF]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.chdir(tmp_path)
    blocked: Any = Blocked()
    sys.meta_path.insert(0, blocked)
    yield
    sys.meta_path.remove(blocked)  # in place: what is imported meanwhile may add finders of its own


def test_every_module_of_the_core_is_imported_by_the_base() -> None:
    code = (
        "import importlib, pkgutil, sys, ragauge\n"
        "from test_extras import Blocked\n"
        "sys.meta_path.insert(0, Blocked())\n"
        "for module in pkgutil.walk_packages(ragauge.__path__, 'ragauge.'):\n"
        "    if not module.name.startswith(('ragauge.plugins.training.', 'ragauge.__main__')):\n"
        "        importlib.import_module(module.name)\n"
    )
    path = os.pathsep.join([str(Path(__file__).parent), str(ROOT / "tests")])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stderr


def test_recorded_answers_are_evaluated_by_the_base(base: None) -> None:
    job = ragauge.evaluate([ROW, {**ROW, "answer": "Schiller"}], ["em", "f1"], judge="lexical", bootstrap=20)
    assert job.metrics["em"] == 0.0
    assert job.metrics["f1"] == pytest.approx(0.2)  # 2 * 1 * 1/4 / (1 + 1/4) for the first, none for the second
    assert job.metrics["ir_score"] == 1.0


def test_bm25_is_run_by_the_base_on_chunks_of_tokens_and_says_so(
    base: None, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    job = ragauge.run(JOB, dataset="sample", retriever="bm25")
    assert job.metrics["ir_score"] > 0.5
    assert "chunker=tokens llm.by=words: what embeds sentences by default has not the packages" in caplog.text
    record = json.loads(next(tmp_path.glob("outputs/*/*/job.json")).read_text("utf-8"))
    assert {"chunker=tokens", "llm.by=words"} <= set(record["overrides"])
    assert job.metrics["judge_share_missing"] == 0


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        ({"chunker": "semantic"}, "embedder.model needs torch, sentence_transformers and faiss, which are not "
         "installed: pip install 'ragauge[embed]', or what embeds nothing (chunker=tokens retriever=bm25)"),
        ({"retriever": "sim"}, "pip install 'ragauge[embed]'"),
        ({"reranker": "cross_encoder"}, "reranker.model needs torch, "),
        ({"llm": "openai", "llm.chat.model": "m"}, "langchain_openai.ChatOpenAI needs langchain_openai, which is not "
         "installed: pip install 'ragauge[openai]'"),
        ({"llm": "ollama", "llm.chat.model": "m"}, "pip install 'ragauge[ollama]'"),
        ({"retriever": "pyterrier", "retriever.pipeline._target_": "my.pipeline"}, "pip install 'ragauge[pyterrier]'"),
        ({"retriever": "langchain", "retriever.retriever._target_": "langchain_community.retrievers.BM25Retriever"},
         "pip install 'ragauge[langchain]'"),
        ({"chunker": "llama_index", "chunker.splitter._target_": "llama_index.core.node_parser.SentenceSplitter"},
         "chunker.splitter._target_=llama_index.core.node_parser.SentenceSplitter needs llama_index, which is not "
         "installed: pip install 'ragauge[llama-index]'"),
        ({"engine": "ray"}, "ray, which is not installed: pip install 'ragauge[ray]', or engine=local"),
        ({"dataset": "ir_datasets", "dataset.id": "vaswani"}, "pip install 'ragauge[collections]'"),
    ],
)  # fmt: skip
def test_what_lacks_an_extra_says_so_before_any_work(base: None, overrides: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        ragauge.run({"dataset": "sample", "retriever": "bm25", **overrides})
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not list(Path(".ragauge").glob("index/*"))


def test_every_extra_brings_the_package_that_it_is_named_for() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for module, extra in EXTRA_OF.items():
        brought = {canonicalize_name(Requirement(text).name) for text in extras[extra]}
        assert canonicalize_name(DISTRIBUTIONS.get(module, module)) in brought, module


def test_types_are_checked_without_the_packages_that_make_test_does_not_install() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    full = extras["full"][0].partition("[")[2].rstrip("]").split(",")
    names = {Requirement(one).name.replace("-", "_") for extra in ("dev", *full) for one in extras[extra]}
    ignored = {one.removesuffix(".*") for one in project["tool"]["pyrefly"]["ignore-missing-imports"]}
    there = {module for module, extra in EXTRA_OF.items() if extra in full or {module, f"python_{module}"} & names}
    assert set(EXTRA_OF) - there == ignored & set(EXTRA_OF)
