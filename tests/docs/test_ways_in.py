"""docs/have-a-corpus.md: every command runs as it stands, in a folder of twenty Markdown files."""

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
GUIDE = ROOT / "docs" / "have-a-corpus.md"


def blocks(language: str) -> list[str]:
    text = GUIDE.read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def commands() -> list[list[str]]:
    """The commands of the guide, in order; a backslash at the end of a line goes on in the next."""
    lines = "".join(blocks("bash")).replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if line.strip()]


def write_files(folder: Path) -> None:
    """The files that the guide shows, and nineteen further documents beside the one of its own."""
    for language, comment in (("markdown", r"<!-- (\S+) -->"), ("csv", r"# (\S+)"), ("python", r"# (\S+)"),
                              ("yaml", r"# (\S+)")):  # fmt: skip
        for block in blocks(language):
            first, _, rest = block.partition("\n")
            named = re.fullmatch(comment, first)
            assert named, first
            (folder / named[1]).parent.mkdir(exist_ok=True)
            (folder / named[1]).write_text(rest, encoding="utf-8")
    source = pytest.importorskip("ragauge.plugins.fictional.source")
    pytest.importorskip("ragauge.plugins.gate.command")
    world = source.FictionalWorld(name="fictional", documents=100).load().docs
    for row in world.head(19).itertuples():
        text = f"# {row.title}\n\n{row.text}\n"
        (folder / "handbook" / f"{row.docno}.md").write_text(text, encoding="utf-8")
    assert len(list((folder / "handbook").glob("*.md"))) == 20


def test_every_command_of_the_tutorial_runs_as_it_stands(tmp_path: Path) -> None:
    write_files(tmp_path)
    said: dict[str, str] = {}
    for program, *arguments in commands():
        if program == "python":
            ended = subprocess.run(
                [sys.executable, *arguments], cwd=tmp_path, env=clean_environment(), capture_output=True,
                text=True, timeout=600, check=False,
            )  # fmt: skip
        else:
            assert program == "ragauge"
            ended = run(tmp_path, *arguments)
        assert ended.returncode == 0, (arguments, ended.stdout + ended.stderr)
        said[shlex.join(arguments)] = ended.stdout + ended.stderr
    assert len(said) == 11

    questions = (tmp_path / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    assert 20 <= len(questions) <= 40
    with (tmp_path / "questions.sheet.csv").open(encoding="utf-8") as sheet:
        assert {"decision", "comment"} <= set(next(csv.reader(sheet)))
    topics = [json.loads(line) for line in (tmp_path / "own.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [topic["answer"] for topic in topics] == ["20 weeks", "the head of the office"]

    def of(part: str) -> str:
        [text] = [text for command, text in said.items() if part in command]
        return text

    assert "IR score 1.000" in of("outputs/own")  # both sentences are found
    assert "Leaderboard at N = 300 tokens" in of("hydra.sweep.dir=multirun/first")
    assert (tmp_path / "multirun" / "first" / "report.html").is_file()
    assert "Paired differences" in of("--n-tokens 100")
    assert "ir_score" in of("gate outputs/after")
    assert f"llm: {len(questions)} calls" in of("dry_run=true")
