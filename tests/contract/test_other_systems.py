"""What Windows, a Mac and a C locale lack, blocked here as far as Linux can show it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from processes import ROOT, clean_environment
from ragauge.llms import claims

# Modules and names that Windows lacks are blocked where ragauge asks for them, and so is /proc.
BLOCKED = """
import os, signal, sys, warnings
_LACKING = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty"}

def of_ragauge():
    frame = sys._getframe(2)
    while frame is not None and name_of(frame).startswith(("importlib", "_frozen", "pathlib", "io")):
        frame = frame.f_back
    return frame is not None and name_of(frame).startswith(("ragauge", "hydra_plugins.ragauge"))

def name_of(frame):
    return str(frame.f_globals.get("__name__", ""))

class Lacking:
    def find_spec(self, name, path=None, target=None):
        if name in _LACKING and of_ragauge():
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

def audit(event, arguments):
    if event == "open" and str(arguments[0]).startswith("/proc") and of_ragauge():
        raise FileNotFoundError(2, "there is no /proc", arguments[0])
    if event == "os.fork":
        raise OSError("there is no fork")

for name in _LACKING:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Lacking())
sys.addaudithook(audit)
for name in ("SIGKILL", "SIGHUP", "SIGUSR1", "pthread_kill"):
    delattr(signal, name)
warnings.filterwarnings("error", category=EncodingWarning, module="ragauge|hydra")
"""
JOBS = """
import ragauge
from ragauge.commands import cli

def command(*arguments):
    sys.argv = ["ragauge", *arguments]
    code = cli.main()
    assert code == 0, (arguments, code)

rows = [
    {"question": f"Wer schrieb „Faust {i}“ · 作者?", "contexts": ["Goethe · Łódź."], "answer": "Goethe",
     "reference": "Goethe", "reference_contexts": ["Goethe · Łódź."], "system": system}
    for i in range(3) for system in ("a: „one“/一", "b \u2192 two?")
]
found = ragauge.evaluate(rows, ["em", "f1"], judge="lexical", bootstrap=20)
ids = [job.run_id for job in found.jobs]
command("dataset=sample", "dataset.limit=4", "retriever=bm25", "chunker=none", "llm=none", "judge=none", "bootstrap=20")
command("compare", *ids)
command("report", ids[0])
command("stages", "dataset=sample", "chunker=none")
command("help")
"""
REFUSED = re.compile(r'[<>:"|?*\\\\\x00-\x1f]|[. ]$')  # in a name on Windows


@pytest.mark.slow
def test_jobs_and_commands_run_without_what_other_systems_lack(tmp_path: Path) -> None:
    folder = tmp_path / "a folder, mine"
    folder.mkdir()
    script = tmp_path / "script.py"
    script.write_text(BLOCKED + JOBS, "utf-8")
    done = subprocess.run(
        [sys.executable, "-X", "warn_default_encoding", str(script)],
        cwd=folder,
        env=clean_environment(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="cp1252"),
        capture_output=True,
        timeout=900,
        check=False,
    )
    told = (done.stdout + done.stderr).decode("cp1252")
    assert done.returncode == 0, told
    assert "Traceback" not in told
    assert "Logging error" not in told
    logs = list(folder.rglob("run.log"))
    assert len(logs) == 3
    assert all(log.read_text("utf-8") for log in logs)
    names = [path.relative_to(folder) for path in folder.rglob("*")]
    assert names
    assert not [str(name) for name in names if REFUSED.search(name.name)]
    lower = [str(name).lower() for name in names]
    assert len(set(lower)) == len(lower)


def test_a_console_that_lacks_a_character_prints_the_line(tmp_path: Path) -> None:
    code = "import sys; sys.argv = ['ragauge', '作者']; from ragauge.commands.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=clean_environment(PYTHONIOENCODING="cp1252:strict"),
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.decode("cp1252").startswith("error: unknown command '??'")


COMES = """
import sys
from pathlib import Path
from ragauge.llms import claims
claims.fcntl = None
claims.come(Path(sys.argv[1]) / "theirs")
print(claims.is_gone(Path(sys.argv[1]) / "mine"), flush=True)
sys.stdin.readline()
"""


def test_a_process_shows_that_it_lives_where_no_bytes_are_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "fcntl", None)
    mine, theirs = tmp_path / "processes" / "mine", tmp_path / "processes" / "theirs"
    claims.come(mine)
    other = subprocess.Popen(
        [sys.executable, "-c", COMES, str(tmp_path / "processes")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert other.stdout is not None
    assert other.stdout.readline() == "False\n"
    assert not claims.is_gone(theirs)
    assert not claims.is_gone(mine)
    other.kill()  # the system ends its lock
    other.communicate()
    assert claims.is_gone(theirs)
    claims.leave(mine)
    assert claims.is_gone(mine)
    assert not list((tmp_path / "processes").iterdir())
