"""`ragauge stages`: the plan of a job."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragauge.commands import stages


def test_the_command_stages_lists_those_of_the_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def listed(*overrides: str) -> list[list[str]]:
        assert stages.main([f"store={tmp_path / 'store'}", *overrides]) == 0
        return [line.split() for line in capsys.readouterr().out.splitlines()]

    first = listed("retriever=sim")
    assert first[1][0::3] == ["dataset", "no"]
    assert first[1][1].isdigit()
    assert len(first[1][2]) == 12
    assert [row[0] for row in first][:7] == ["stage", "dataset", "located", "chunks", "index", "run", "context"]
    rows = listed("retriever=sim", "order=reverse")
    # Nothing is made, so that what depends on it has no digest yet.
    assert rows[6][1:] == ["known", "after", "run", "no"]
    assert not list(tmp_path.glob("store/*/*"))
