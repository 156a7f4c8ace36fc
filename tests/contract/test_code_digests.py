"""Digests of other people's code: what moves them, and what does not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ragauge.contract import identity
from ragauge.contract.identity import code_digests


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that Python imports from; every look reads the files anew, as every process does."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(identity, "module_digest", identity.module_digest.__wrapped__)
    return tmp_path


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def test_a_module_is_known_by_its_file(folder: Path) -> None:
    write(folder / "team_module.py", "x = 1\n")
    write(folder / "team_neighbour.py", "x = 1\n")
    before = code_digests(["team_module.Class.method"])
    assert set(before) == {"team_module"}
    write(folder / "team_neighbour.py", "x = 2\n")
    assert code_digests(["team_module.other"]) == before
    write(folder / "team_module.py", "x = 2\n")
    assert code_digests(["team_module.other"]) != before


@pytest.mark.parametrize("init", [True, False])
def test_a_package_is_known_by_all_its_python_files_and_no_other(folder: Path, init: bool) -> None:
    package = folder / f"team_package_{init}"
    if init:
        write(package / "__init__.py", "raise ImportError('nothing here is imported')\n")
    write(package / "retrieval.py", "from .deep import helper\n")
    write(package / "deep" / "helper.py", "x = 1\n")
    names = [f"{package.name}.retrieval.search"]
    seen = [code_digests(names)]
    write(package / "data.txt", "no code\n")
    assert code_digests(names) == seen[0]
    write(package / "deep" / "helper.py", "x = 2\n")
    seen.append(code_digests(names))
    (package / "deep" / "helper.py").rename(package / "deep" / "renamed.py")
    seen.append(code_digests(names))
    assert len({str(digest) for digest in seen}) == 3
    assert package.name not in sys.modules


def test_the_same_files_elsewhere_have_the_same_digest(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("here", "there"):
        write(folder / place / "team_moved" / "__init__.py", "x = 1\n")
        write(folder / place / "team_moved" / "b.py", "y = 1\n")
    found = []
    for place in ("here", "there"):
        with monkeypatch.context() as patch:
            patch.syspath_prepend(folder / place)
            found.append(code_digests(["team_moved.b.y"]))
    assert found[0] == found[1] != {}


def test_what_has_a_version_or_no_files_has_no_digest() -> None:
    assert code_digests(["ragauge.retrieval.retrievers.BM25", "builtins.dict", "json.loads", "nowhere.at.all"]) == {}
    assert code_digests(["__main__.f"]) == {} or sys.modules["__main__"].__spec__ is not None
    assert code_digests([]) == {}
