"""The four ways in (docs/have-a-system.md and its kin): every command runs as it stands, from an empty folder."""

from __future__ import annotations

import csv
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from processes import ROOT, clean_environment, run

pytestmark = pytest.mark.slow
COMMENTS = {"markdown": r"<!-- (\S+) -->", "csv": r"# (\S+)", "python": r"# (\S+)", "yaml": r"# (\S+)"}
FAILS = {"gate outputs/change --rules gate.yaml --baseline outputs/main": 3}  # exit code of what is to fail


def blocks(guide: Path, language: str) -> list[str]:
    text = guide.read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def commands(guide: Path) -> list[list[str]]:
    """The commands of the guide, in order; a backslash at the end of a line goes on in the next."""
    lines = "".join(blocks(guide, "bash")).replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if line.strip()]


def write_files(guide: Path, folder: Path) -> None:
    """The files that the guide shows."""
    for language, comment in COMMENTS.items():
        for block in blocks(guide, language):
            first, _, rest = block.partition("\n")
            named = re.fullmatch(comment, first)
            assert named, first
            (folder / named[1]).parent.mkdir(exist_ok=True)
            (folder / named[1]).write_text(rest, encoding="utf-8")


def said_by(guide: str, folder: Path) -> dict[str, str]:
    """What each command of a guide printed, the files that it shows being there."""
    page = ROOT / "docs" / f"{guide}.md"
    write_files(page, folder)
    said: dict[str, str] = {}
    for program, *arguments in commands(page):
        line = shlex.join(arguments)
        if program == "python":
            ended = subprocess.run(
                [sys.executable, *arguments], cwd=folder, env=clean_environment(), capture_output=True,
                text=True, timeout=600, check=False,
            )  # fmt: skip
        else:
            assert program == "ragauge"
            ended = run(folder, *arguments)
        assert ended.returncode == FAILS.get(line, 0), (arguments, ended.stdout + ended.stderr)
        said[line] = ended.stdout + ended.stderr
    return said


def not_said(guide: str, said: str, *starts: str) -> list[str]:
    """Lines of output that the guide shows, with these beginnings, and that did not come; numbers may be others."""

    def plain(text: str) -> str:
        return re.sub(r"[\d.<*†^ -]+", " ", text)

    shown = "".join(blocks(ROOT / "docs" / f"{guide}.md", "text")).splitlines()
    return [line for line in shown if line.startswith(starts) and plain(line).strip() not in plain(said)]


def test_i_have_a_corpus(tmp_path: Path) -> None:
    source = pytest.importorskip("ragauge.plugins.fictional.source")
    (tmp_path / "handbook").mkdir()
    for row in source.FictionalWorld(name="fictional", documents=100).load().docs.head(19).itertuples():
        (tmp_path / "handbook" / f"{row.docno}.md").write_text(f"# {row.title}\n\n{row.text}\n", encoding="utf-8")
    said = said_by("have-a-corpus", tmp_path)
    assert len(said) == 10
    assert len(list((tmp_path / "handbook").glob("*.md"))) == 20

    questions = (tmp_path / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    assert 20 <= len(questions) <= 40
    assert {"qid", "query", "answer", "evidence"} <= set(json.loads(questions[0]))
    with (tmp_path / "questions.sheet.csv").open(encoding="utf-8") as sheet:
        assert {"decision", "comment"} <= set(next(csv.reader(sheet)))

    def of(part: str) -> str:
        [text] = [text for command, text in said.items() if part in command]
        return text

    assert "IR score 1.000" in of("outputs/own")  # both sentences are found
    assert not not_said("have-a-corpus", of("hydra.sweep.dir=multirun/first"), "bm25 ", "system", "Leaderboard")
    assert (tmp_path / "multirun" / "first" / "report.html").is_file()
    assert "Paired differences" in of("--n-tokens 100")
    assert "ir_score" in of("gate outputs/after")
    assert f"llm: {len(questions)} calls" in of("dry_run=true")


def test_i_have_a_system(tmp_path: Path) -> None:
    said = said_by("have-a-system", tmp_path)
    [board] = [text for command, text in said.items() if command.startswith("-m experiment=recorded")]
    assert not not_said("have-a-system", board, "Leaderboard", "system", "all", "predictor")
    assert (tmp_path / "multirun" / "mine" / "report.html").is_file()
    assert "not retrieved" in said["failed.py"]


def test_i_compare_retrievers(tmp_path: Path) -> None:
    said = said_by("compare-retrievers", tmp_path)
    starts = ("Leaderboard", "system", "hybrid ", "bm25 ", "sim ", "Paired", "measure", "R@5", "Topics", "median")
    assert not not_said("compare-retrievers", "".join(said.values()), *starts)
    assert r"\toprule" in (tmp_path / "three.tex").read_text(encoding="utf-8")


def test_i_guard_ci(tmp_path: Path) -> None:
    said = said_by("guard-ci", tmp_path)
    assert "Gate failed: 1 regressed, 3 pass" in said["gate outputs/change --rules gate.yaml --baseline outputs/main"]
    assert "Gate passed: 1 inconclusive, 3 pass" in said["gate outputs/tuned --rules gate.yaml --baseline outputs/main"]
