"""The command as a user meets it: a process of its own, its messages and its exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import processes
from ragauge.commands import cli
from ragauge.contract import __version__

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "run.py"), *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=1200,
    )


def test_without_an_argument_nothing_starts_and_the_version_is_its_own(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments, begins in ([], "ragauge measures retrieval-augmented"), (["--version"], f"ragauge {__version__}\n"):
        monkeypatch.setattr(sys, "argv", ["ragauge", *arguments])
        assert cli.main() == 0
        assert capsys.readouterr().out.startswith(begins)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["n_token=5"], "unknown key 'n_token'. Did you mean n_tokens?"),
        (
            ["retriever=mmr", "retriever.fetchk=9"],
            "Did you mean retriever.fetch_k? Retriever has: fetch_k, lambda",
        ),
        (["llm.chat.model=gpt-4o"], "unknown key 'llm.chat'. It is a key of llm=anthropic, azure, "),
        (["retriever=bm25", "retriever.path=my.trec"], "It is a key of retriever=recorded, trec_rag. Retriever has: b"),
        (["retriever=tfidf"], "bm25"),
        (["n_tokens=many"], "n_tokens=many: allowed is a whole number"),
        (["n_tokens=-1"], "n_tokens=-1: allowed are"),
        (["retriever.top_k=0"], "retriever.top_k"),
        (["dataset=jsonl", "dataset.docs=nowhere.jsonl", "dataset.topics=x"], "nowhere.jsonl"),
        (["-m", "n_tokens=100,many"], "n_tokens=many: allowed is a whole number"),
    ],
)
def test_config_errors_end_with_2_before_any_work(arguments, message, tmp_path) -> None:
    done = processes.run(tmp_path, *arguments)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / ".ragauge").exists()
    assert not (tmp_path / "mlruns").exists()


def test_help_lists_groups_options_and_keys_without_heavy_imports(tmp_path) -> None:
    done = run("--help", cwd=tmp_path)
    assert done.returncode == 0
    for word in ("retriever: bm25", "chunker:", "n_tokens: 1000", "make ui"):
        assert word in done.stdout
    code = (
        "import sys; sys.argv = ['run.py', '--help']\n"
        "import runpy\n"
        "try: runpy.run_path(%r, run_name='__main__')\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'mlflow', 'pandas', 'transformers', 'faiss', 'langchain_core', 'numba'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))\n"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code % str(ROOT / "run.py")], cwd=tmp_path, capture_output=True, text=True
    )
    assert "HEAVY []" in loaded.stdout
