"""A command writes over no file that ragauge did not write, and says so before it does anything else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ragauge.commands import compare
from ragauge.plugins.export import command as export
from ragauge.plugins.gate import command as gate
from ragauge.plugins.sampling import command as sampling
from ragauge.plugins.trec_rag import command as trec_rag

COMMANDS: dict[str, Callable[[str], int]] = {
    "compare --csv": lambda file: compare.main(["a", "--csv", file]),
    "compare --topics-csv": lambda file: compare.main(["a", "--topics-csv", file]),
    "compare --md": lambda file: compare.main(["a", "--md", file]),
    "compare --latex": lambda file: compare.main(["a", "--latex", file]),
    "gate --junit": lambda file: gate.main(["a", "ir_score=0.5", "--junit", file]),
    "gate --markdown": lambda file: gate.main(["a", "ir_score=0.5", "--markdown", file]),
    "gate --json": lambda file: gate.main(["a", "ir_score=0.5", "--json", file]),
    "export -o": lambda file: export.main(["a", "-o", file]),
    "sample --out": lambda file: sampling.main(["a", "--n", "60", "--out", file]),
    "trec_rag scores -o": lambda file: trec_rag.main(["scores", "a", "-o", file]),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_of_the_user_is_not_written_over_unsaid(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").write_text("my notes\n")
    assert COMMANDS[command]("mine") == 2
    assert capsys.readouterr().err == (
        "error: mine is there, and ragauge did not write it: give another name, or --force\n"
    )
    assert (tmp_path / "mine").read_text() == "my notes\n"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
