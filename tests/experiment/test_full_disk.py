"""A full disk: one line that names the file or the folder, not a traceback."""

from __future__ import annotations

import errno
import logging
import sqlite3
import sys
from pathlib import Path

import hydra
from hydra import compose, initialize_config_dir

from processes import ROOT
from ragauge.commands import main as cli
from ragauge.contract.errors import full_disk
from ragauge.experiment import job
from ragauge.experiment.job import execute
from ragauge.experiment.request import JobFolder
from ragauge.experiment.setup import config


def no_space(file: str | None = None) -> OSError:
    return OSError(errno.ENOSPC, "No space left on device", file)


def test_the_error_s_file_is_named_else_the_place_with_the_least_room(tmp_path: Path, monkeypatch) -> None:
    free = {tmp_path / "store": 10, tmp_path / "mlruns": 0}
    monkeypatch.setattr("ragauge.contract.errors._free_bytes", lambda place: free[place])
    assert "on the disk of /data/x.npy;" in str(full_disk(no_space("/data/x.npy"), *free))
    assert f"on the disk of {tmp_path / 'mlruns'};" in str(full_disk(no_space(), *free))
    assert "on the disk;" in str(full_disk(no_space()))


def test_the_cause_of_an_error_counts_and_so_do_sqlite_s_words() -> None:
    wrapped = RuntimeError("cannot log")
    wrapped.__cause__ = sqlite3.OperationalError("database or disk is full")
    assert full_disk(wrapped) is not None
    assert full_disk(OSError(errno.EDQUOT, "Disk quota exceeded")) is not None
    assert full_disk(PermissionError(errno.EACCES, "Permission denied")) is None
    assert full_disk(ValueError("full")) is None


def test_a_job_whose_disk_is_full_says_so_in_a_line(tmp_path: Path, monkeypatch, caplog) -> None:
    def make(*_: object) -> None:
        raise no_space(str(tmp_path / "s" / "chunks"))

    config.register()
    monkeypatch.setattr(job, "make_pipeline", make)
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        cfg = compose("config", overrides=[f"store={tmp_path / 's'}", "llm=none", "judge=none"])
    with caplog.at_level(logging.INFO):
        assert execute(cfg, JobFolder(tmp_path / "out", None, 0, {}, ())) == 1
    (told,) = (record for record in caplog.records if record.levelno >= logging.ERROR)
    assert f"no space is left on the disk of {tmp_path / 's' / 'chunks'}" in told.getMessage()
    assert told.exc_info is None


def test_a_command_whose_disk_is_full_says_so_in_a_line(monkeypatch, capsys) -> None:
    def command(*_: object, **__: object) -> None:
        raise no_space("/data/outputs")

    monkeypatch.setattr(sys, "argv", [str(ROOT / "run.py")])
    monkeypatch.setattr(hydra, "main", command)
    assert cli.main() == 1
    assert capsys.readouterr().err.startswith("error: no space is left on the disk of /data/outputs;")
