"""Commands of installed packages: found by an entry point, shown in the help, refused where they are none."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from processes import ROOT
from ragauge.commands import known
from ragauge.contract.errors import ConfigError

COUNT = 'ABOUT = "counts its arguments"\n\n\ndef main(arguments):\n    print(len(arguments))\n    return 4\n'


def install(site: Path, point: str, code: str = COUNT) -> None:
    """Lays a distribution there as pip would, with one command."""
    metadata = site / "team_words-1.2.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: team_words\nVersion: 1.2\n")
    (metadata / "entry_points.txt").write_text(f"[{known.GROUP}]\n{point}\n")
    (site / "team_words.py").write_text(code)


def run(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = f"import sys, runpy; sys.path.insert(1, {str(site)!r}); sys.argv = sys.argv[1:]\n"
    return subprocess.run(
        [sys.executable, "-c", code + "runpy.run_path(sys.argv[0], run_name='__main__')",
         str(ROOT / "run.py"), *arguments],
        cwd=site, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


def test_a_package_s_command_runs_and_stands_in_the_help(tmp_path: Path) -> None:
    install(tmp_path, "count = team_words")
    done = run(tmp_path, "count", "a", "b")
    assert (done.returncode, done.stdout, done.stderr) == (4, "2\n", "")
    assert re.search(r"^  count +counts its arguments$", run(tmp_path, "help").stdout, re.M)
    assert "Did you mean count?" in run(tmp_path, "cuont").stderr


@pytest.mark.parametrize(
    ("point", "code", "message"),
    [
        ("count = nowhere", COUNT, r"cannot be loaded .ModuleNotFoundError"),
        ("count = team_words", "1 / 0\n", r"cannot be loaded .ZeroDivisionError"),
        ("count = team_words", "def main(arguments): ...\n", r"must be a module with a function main"),
        ("report = team_words", COUNT, r"ragauge has a command 'report'"),
    ],
)
def test_a_command_that_cannot_be_had_is_named(
    point: str, code: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, point, code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "team_words", raising=False)
    with pytest.raises(ConfigError, match=rf"entry point {point.partition(' ')[0]} = .*{message}"):
        known.lines()
    monkeypatch.delitem(sys.modules, "team_words", raising=False)


def test_the_help_ends_with_2_where_a_command_cannot_be_had(tmp_path: Path) -> None:
    install(tmp_path, "count = nowhere")
    done = run(tmp_path, "help")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: entry point count = 'nowhere' (group ragauge.commands)")
