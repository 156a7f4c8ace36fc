"""What is stored is known by versions; a test notices where code changed and its version did not."""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import versions
from options import option_files
from processes import ROOT, run_fresh

CONTEXTS = "ragauge/retrieval/contexts.py"
BM25 = "ragauge/retrieval/retrievers/bm25.py"


@pytest.fixture
def edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str, str], None]]:
    """Replaces text in a file of a copy of the source, which `versions` then looks at."""
    shutil.copytree(ROOT / "src", tmp_path / "src")
    monkeypatch.setattr(versions, "SOURCE", tmp_path / "src")

    def replace(name: str, old: str, new: str) -> None:
        file = tmp_path / "src" / name
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")
        clear()

    clear()
    yield replace
    clear()


def clear() -> None:
    # The others go by a source's text.
    for cached in (versions._digest, versions._file, versions._source, versions._imports):
        cached.cache_clear()


def test_code_that_changed_has_another_version() -> None:
    assert versions.changed(versions.read()) == [], (
        "raise the version of these where they give other results; else: python tests/versions.py --same"
    )
    known = {name: (row["version"], row["code"]) for name, row in versions.read().items()}
    there = versions.items()
    known = {name: row for name, row in known.items() if name in there}  # a plug-in may be gone
    assert there == known, "python tests/versions.py writes the list anew"


def test_every_option_of_conf_stands_in_the_list() -> None:
    # One that begins with another option has its class.
    files = {f"{f.parent.name}/{f.stem}" for f in option_files() if "_target_:" in f.read_text("utf-8")}
    kinds = {name.partition("/")[0] for name in versions.read()}
    assert {name for name in files if name.partition("/")[0] in kinds} <= set(versions.read())


def test_an_edit_of_what_lays_out_contexts_is_noticed_where_contexts_are_made(
    edit: Callable[[str, str, str], None],
) -> None:
    edit(CONTEXTS, "_CHARS_PER_TOKEN = 8", "_CHARS_PER_TOKEN = 9")
    changed = versions.edited(versions.read())
    assert {"stage/context", "stage/contexts"} <= set(changed)
    assert not {"stage/index", "stage/run", "retriever/bm25", "judge/lexical"} & set(changed)


def test_an_edit_of_a_component_is_noticed_in_all_options_that_use_it(
    edit: Callable[[str, str, str], None],
) -> None:
    edit("ragauge/retrieval/retrievers/dense.py", "_DECIMALS = 12", "_DECIMALS = 11")
    changed = versions.edited(versions.read())
    assert {"retriever/sim", "retriever/mmr", "retriever/mlq", "retriever/reo"} <= set(changed)
    assert "chunker/semantic" not in changed


def test_comments_docstrings_and_blank_lines_are_no_change(edit: Callable[[str, str, str], None]) -> None:
    edit(CONTEXTS, '"""A run to contexts:', '"""Contexts of a run:')
    edit(CONTEXTS, "_CHARS_PER_TOKEN = 8", "\n# said otherwise\n_CHARS_PER_TOKEN = 8  # too")
    assert versions.edited(versions.read()) == []


CODE = """
import os
__all__ = ["f"]
def f(text, limit: int = 2) -> str:
    "What it returns."
    found = [part for part in text.split()]  # in order
    def within():
        nonlocal found
        found = found[:limit]
    if not found:
        raise ValueError(f"{text!r} has no part")
    log.info("%d parts", len(found))
    return found[limit]
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("found", "parts"),
        ("part ", "word "),
        (": int", ""),
        ('"What it returns."', '"Returns something."'),
        ("  # in order", ""),
        ("has no part", "is blank"),
        ("%d parts", "%d words"),
        ("import os", "import sys"),
        ('["f"]', "[]"),
        ("text.split()]", "text.split()\n    ]"),
    ],
)
def test_names_of_locals_and_what_is_said_are_no_code(old: str, new: str) -> None:
    assert old in CODE
    assert _code_of(CODE.replace(old, new)) == _code_of(CODE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("limit", "most"),  # a caller may name it
        ("= 2", "= 3"),
        ("found[:limit]", "found[limit:]"),
        ("if not found", "if found"),
        ("ValueError", "TypeError"),
        ("return found[limit]", "return text[limit]"),
        ("split", "rsplit"),
        ("def f", "def g"),
    ],
)
def test_any_other_edit_is_one_of_the_code(old: str, new: str) -> None:
    assert old in CODE
    assert _code_of(CODE.replace(old, new)) != _code_of(CODE)


def _code_of(text: str) -> str:
    return versions._text(versions._normalised(ast.parse(text)))


def test_a_raised_version_is_enough() -> None:
    known = versions.read()
    known["stage/context"] = {"version": 0, "code": "another"}
    assert versions.edited(known) == []


@pytest.mark.parametrize("name", ["order/reverse", "answers/em", "chunker/tokens"])
def test_edited_code_with_the_same_output_needs_no_version(name: str) -> None:
    version, _ = versions.items()[name]
    edited = {"version": version, "code": "another"}
    assert versions.changed({name: {**edited, "output": versions.output(name)}}) == []
    assert versions.changed({name: {**edited, "output": "another"}}) == [name]
    assert versions.changed({name: edited}) == [name]


def test_what_no_small_input_shows_needs_a_version_for_edited_code() -> None:
    version, _ = versions.items()["judge/lexical"]
    assert versions.output("judge/lexical") is None
    known = {"judge/lexical": {"version": version, "code": "another"}}
    assert versions.changed(known) == ["judge/lexical"]


def test_each_option_has_an_output_of_its_own() -> None:
    names = ["order/rank", "order/reverse", "chunker/none", "chunker/tokens", "expander/none", "order/long_context"]
    outputs = [versions.output(name) for name in names]
    assert len({*outputs}) == len(names) - 1  # without an expander the order by rank is the order
    assert outputs == [versions.output(name) for name in names]


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
