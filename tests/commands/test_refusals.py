"""What cannot be run as it was asked for is told in one line, with exit code 2; nothing is left behind."""

from __future__ import annotations

import errno
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from processes import ROOT, run
from ragauge.commands.conf import explain, refuse_excessive
from ragauge.commands.given import overrides
from ragauge.contract.errors import ConfigError, not_writable

SMALL = ["dataset.limit=2", "bootstrap=10", "chunker=none", "llm=none", "judge=none"]


def refused(folder: Path, *arguments: str, **environment: str) -> str:
    """What is told of a command that has to end with 2 and one line."""
    said = run(folder, *arguments, **environment)
    assert (said.returncode, said.stdout) == (2, ""), said.stderr
    (line,) = said.stderr.splitlines()
    return line


def test_a_sweep_without_a_job_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    line = refused(tmp_path, "-m", "n_tokens=range(100,100,100)")
    assert line.startswith("error: n_tokens=range(100,100,100): holds no value, so there is no job to run")
    assert list(tmp_path.iterdir()) == []


def test_a_choice_that_matches_no_option_is_a_sweep_without_a_job(tmp_path: Path) -> None:
    assert "retriever=glob(zz*): holds no value" in refused(tmp_path, "-m", "retriever=glob(zz*)")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("n_tokens=abc", "error: n_tokens=abc: allowed is a whole number"),
        ("n_tokens=null", "error: n_tokens=null: allowed is any value but null"),
        ("dry_run=maybe", "error: dry_run=maybe: allowed is true or false"),
        ("n_grid=100", "error: n_grid=100: allowed is a list, such as [1,2]"),
        ("max_missing_share=a", "error: max_missing_share=a: allowed is a number"),
        ("estimate=3", "error: estimate=3: allowed is to set its keys one by one, such as estimate.<key>="),
        ("tracking.urri=1", "error: unknown key 'tracking.urri'. Did you mean tracking.uri? Tracking has: "),
        ("retriever.k3.x=1", "error: unknown key 'retriever.k3'. Retriever has: b, formula, "),
        ("retriever.k1.x=1", "error: unknown key 'retriever.k1.x': retriever.k1 has no keys"),
        ("nothing.such=1", "error: unknown key 'nothing'. The config has: "),
        ("hydra.nothing=1", "error: unknown key 'hydra.nothing'; --cfg hydra shows"),
        ("retriever=bm26", "error: retriever=bm26: there is no such option. Did you mean bm25? Options: "),
        ("answers=[em,emm]", "error: answers=emm: there is no such option. Did you mean em? Options: "),
        ("answers=[faithfullness]", "error: answers=faithfullness: there is no such option. Did you mean faith"),
        ("n_tokens=" + "9" * 5_000, "error: n_tokens: 5,000 digits of one number; allowed are up to 400"),
        ("slices=[type", "error: slices=[type: the value cannot be read; "),
        ("a b=1", "error: a b=1: is no key=value"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_set_is_one_line_with_what_is_allowed(given: str, told: str, tmp_path: Path) -> None:
    assert refused(tmp_path, given).startswith(told)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("[" * 3_000 + "]" * 3_000, "3,000 brackets within brackets; allowed are up to 50"),
        ("{a:" * 60 + "1" + "}" * 60, "60 brackets within brackets"),
        ("${seed}" * 20_000, r"20,000 interpolations \(\$\{...\}\); allowed are up to 100"),
        ("'" + "${seed}" * 101 + "'", "101 interpolations"),
        ("[" + "em," * 6_000 + "em]", "6,000 commas outside of quotes; allowed are up to 5,000"),
        ("'${oc.env:" + "[" * 60 + "}'", "61 brackets within brackets"),
        ("[" * 60 + "'" + "\\'" * 50_000, "60 brackets within brackets"),
        ("1" * 401, "401 digits of one number; allowed are up to 400"),
    ],
)
def test_what_hydra_would_read_for_minutes_or_not_survive_is_one_line(value: str, told: str) -> None:
    with pytest.raises(ConfigError, match=f"^gate: {told}"):
        refuse_excessive(["retriever=bm25", f"gate={value}"])


def test_long_texts_in_quotes_and_short_lists_are_taken() -> None:
    refuse_excessive(
        [f'llm.prompt="{"([{" * 100}{"1" * 500},{"a, b" * 6_000}"', "slices=[[a],[b,{c:d}]]", "n=1_000", "-m"]
    )


def test_a_value_of_python_that_is_too_much_is_one_line() -> None:
    nested: Any = 1
    for _ in range(3_000):
        nested = [nested]
    for value in (nested, {"a": nested}):
        with pytest.raises(ConfigError, match="nested too deep"):
            overrides({"gate": value}, {}, swept=False)
    with pytest.raises(ConfigError, match="n_tokens: Exceeds the limit"):
        overrides({"n_tokens": 10**5_000}, {}, swept=False)


def test_a_path_with_an_apostrophe_is_told_as_it_has_to_be_quoted(tmp_path: Path) -> None:
    home = tmp_path / "it's here"
    home.mkdir()
    line = refused(tmp_path, "dataset=sample", f"store={home}/store", "--cfg", "job")
    advice = line.rpartition("is given as ")[2]
    (argument,) = subprocess.run(
        ["sh", "-c", f"printf '%s\\n' {advice}"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert argument == f'store="{home}/store"'
    shown = run(tmp_path, "dataset=sample", argument, "--cfg", "job")
    assert yaml.safe_load(shown.stdout)["store"] == f"{home}/store", shown.stderr


def test_the_keys_beside_an_unknown_one_are_found_in_a_config_folder_with_an_apostrophe(
    tmp_path: Path,
) -> None:
    (tmp_path / "it's" / "retriever").mkdir(parents=True)
    (tmp_path / "it's" / "retriever" / "ours.yaml").write_text("defaults: [bm25]\nwarmth: 3\n")
    line = refused(tmp_path, "--config-dir", "it's", "retriever=ours", "retriever.warmht=1")
    assert "Did you mean retriever.warmth?" in line


def test_a_config_folder_without_a_configuration_is_named(tmp_path: Path) -> None:
    line = refused(tmp_path, "--config-path", str(tmp_path), "dataset=sample")
    assert line == f"error: --config-path {tmp_path} holds no config.yaml"


def test_stages_takes_the_configuration_of_config_path(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "conf", tmp_path / "ours")
    root = tmp_path / "ours" / "config.yaml"
    root.write_text(root.read_text(encoding="utf-8").replace("n_tokens: 1000", "n_tokens: -3"), "utf-8")
    line = refused(tmp_path, "stages", "dataset=sample", "--config-path", "ours")
    assert "n_tokens=-3" in line


def test_a_message_of_several_lines_becomes_one() -> None:
    assert explain(ValueError("first\n\n  second\tthird")) == "first second third"


# --- places that cannot be written --------------------------------------------------------------------------


@contextmanager
def frozen(path: Path) -> Iterator[None]:
    """The path as nobody can change it, not even root; skips where the file system knows no such flag."""
    if shutil.which("chattr") is None or subprocess.run(["chattr", "+i", path], check=False).returncode:
        pytest.skip("needs chattr +i: a root user, and a file system that has the flag")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", path], check=True)


@pytest.mark.parametrize(
    ("name", "chosen_by", "sweep"),
    [
        (".ragauge", "store=<folder> or RAGAUGE_STORE", []),
        ("mlruns", "tracking.uri or MLFLOW_TRACKING_URI", []),
        ("outputs", "hydra.run.dir=<folder>", []),
        ("multirun", "hydra.sweep.dir=<folder>", ["-m"]),
    ],
)
def test_a_file_where_a_folder_is_to_be_written_is_named_with_what_chooses_another(
    name: str, chosen_by: str, sweep: list[str], tmp_path: Path
) -> None:
    (tmp_path / name).write_text("mine")
    line = refused(tmp_path, *sweep, *SMALL)
    assert f"{tmp_path / name}" in line
    assert ": cannot be written (" in line
    assert chosen_by in line
    assert (tmp_path / name).read_text() == "mine"


@pytest.mark.slow
@pytest.mark.parametrize("name", [".ragauge", "mlruns", "."])
def test_a_read_only_folder_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir(exist_ok=True)
    with frozen(tmp_path / name):
        line = refused(tmp_path, *SMALL)
    assert str(tmp_path / name) in line
    assert "cannot be written (operation not permitted)" in line


@pytest.mark.slow
def test_a_read_only_database_is_one_line_and_not_its_sql(tmp_path: Path) -> None:
    assert run(tmp_path, *SMALL).returncode == 0
    with frozen(tmp_path / "mlruns" / "mlflow.db"):
        line = refused(tmp_path, *SMALL, "seed=1")
    database = tmp_path / "mlruns" / "mlflow.db"
    assert f"{database}: cannot be written (attempt to write a readonly database)" in line


def test_what_is_no_database_is_told_without_its_sql(tmp_path: Path) -> None:
    (tmp_path / "mlruns").mkdir()
    (tmp_path / "mlruns" / "mlflow.db").write_text("a letter to my aunt")
    line = refused(tmp_path, *SMALL)
    assert line.endswith("mlflow.db: (sqlite3.DatabaseError) file is not a database")


def test_only_errors_of_the_places_count(tmp_path: Path) -> None:
    places = {"store=<folder>": tmp_path / "store"}

    def told(number: int, file: Path) -> str | None:
        return not_writable(OSError(number, "Permission denied", str(file)), places)

    assert told(errno.EACCES, tmp_path / "store" / "chunks" / "x") == (
        f"{tmp_path}/store/chunks/x: cannot be written (permission denied); store=<folder> chooses another place"
    )
    assert told(errno.EROFS, tmp_path) is not None  # the folder that the store would be made in
    assert told(errno.EACCES, tmp_path / "corpus.csv") is None
    assert told(errno.ENOENT, tmp_path / "store" / "x") is None
    assert told(errno.ENOENT, tmp_path / "corpus.csv") is None
    assert told(errno.ENOENT, tmp_path / "store") is not None  # a folder that cannot be made, as below /proc
    assert told(errno.ENAMETOOLONG, tmp_path / "store" / "x") is not None
    (tmp_path / "store").mkdir()
    assert told(errno.EEXIST, tmp_path / "store") is None  # a folder that is there is a mistake of the code
    locked = RuntimeError("cannot log")
    locked.__cause__ = sqlite3.OperationalError("attempt to write a readonly database")
    assert not_writable(locked, places) is None
    assert str(tmp_path / "m.db") in str(not_writable(locked, places, tmp_path / "m.db"))


def test_a_server_that_does_not_run_is_told_with_its_address_before_any_work(tmp_path: Path) -> None:
    said = run(
        tmp_path, "dataset.limit=1", "bootstrap=0", "chunker=none", "judge=none", "llm=ollama",
        "llm.retries=0", "llm.chat.base_url=http://127.0.0.1:1",
    )  # fmt: skip
    assert said.returncode == 4
    assert said.stderr.splitlines()[-1].endswith(
        "nothing listens at http://127.0.0.1:1, where model llama3:8b is asked"
    )
    assert "chunking" not in said.stderr


@pytest.mark.parametrize("name", ["run.log", ".hydra", ".hydra/config.yaml"])
def test_a_run_s_folder_with_a_link_in_it_is_not_written_through(tmp_path: Path, name: str) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("theirs")
    path = tmp_path / "run" / name
    path.parent.mkdir(parents=True)
    path.symlink_to(theirs)
    line = refused(tmp_path, "hydra.run.dir=run", *SMALL)
    assert line.startswith(f"error: {path} is there, and no plain file or folder")
    assert theirs.read_text() == "theirs"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "theirs"]


def test_a_sweep_s_folder_in_which_a_job_s_folder_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sweep").mkdir()
    (tmp_path / "theirs").mkdir()
    (tmp_path / "sweep" / "0").symlink_to(tmp_path / "theirs")
    line = refused(tmp_path, "-m", "hydra.sweep.dir=sweep", "n_tokens=100,200", *SMALL)
    assert line.startswith(f"error: {tmp_path}/sweep/0 is there")
    assert list((tmp_path / "theirs").iterdir()) == []
