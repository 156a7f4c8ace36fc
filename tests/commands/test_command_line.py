"""`python run.py`, `python -m ragauge` and `ragauge` are one command line, from any folder."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from options import CONF
from processes import ROOT, RUN, Command, clean_environment
from ragauge.commands import known

MODULE = str(ROOT / "src" / "ragauge" / "__main__.py")
SMALL = [
    "-m", "retriever=bm25,none", "n_tokens=50", "n_grid=[50]", "chunker=none", "tokenizer=words",
    "dataset=sample", "dataset.limit=6", "llm=none", "judge=none", "bootstrap=20",
]  # fmt: skip


def console_script(folder: Path) -> str:
    """The script that pip writes for the entry point of pyproject.toml, in a folder without conf/."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    module, function = pyproject["project"]["scripts"]["ragauge"].split(":")
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "ragauge"
    script.write_text(f"import sys\nfrom {module} import {function}\nsys.exit({function}())\n", "utf-8")
    return str(script)


@pytest.fixture(scope="module")
def spellings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What follows `python` on each of the three command lines."""
    script = console_script(tmp_path_factory.mktemp("installed") / "bin")
    return {"run.py": [RUN], "-m ragauge": ["-m", "ragauge"], "ragauge": [script]}


OWN = {*known.COMMANDS, "help"}  # not of plug-ins


def call(given: list[str], *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *given, *arguments], cwd=cwd, env=clean_environment(), capture_output=True,
        text=True, timeout=300, check=False,
    )  # fmt: skip


def test_help_is_the_same_on_each_command_line_and_from_any_folder(spellings, tmp_path) -> None:
    said = {call(given, "help", cwd=tmp_path).stdout for given in spellings.values()}
    assert len(said) == 1
    [text] = said
    for line in known.lines():
        assert line in text.splitlines()
    assert text.index("  stages ") < text.index("One job:") < text.index("A sweep:")


@pytest.mark.parametrize("spelling", ["run.py", "-m ragauge", "ragauge"])
def test_a_configuration_is_found_from_any_folder(spelling, spellings, tmp_path) -> None:
    done = call(spellings[spelling], "--cfg", "job", "retriever=mmr", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "fetch_k: " in done.stdout


def test_hydras_help_names_the_commands_and_still_shows_every_key(spellings, tmp_path) -> None:
    done = call(spellings["ragauge"], "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for line in known.lines():
        assert line in lines
    root = yaml.safe_load((ROOT / "conf" / "config.yaml").read_text(encoding="utf-8"))
    for key in set(root) - {"defaults", "hydra"}:
        assert any(line.startswith(f"{key}:") for line in lines), key


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (
            "comapre",
            "unknown command 'comapre'. Did you mean compare? Commands: compare, report, pool, ",
        ),
        ("bm25", "unknown command 'bm25'. Commands: compare"),
        ("../store", "unknown command '../store'. "),
        ("_gc", "unknown command '_gc'. "),
        ("main", "unknown command 'main'. "),
    ],
)
def test_an_unknown_word_ends_with_2_and_one_line(word, message, spellings, tmp_path) -> None:
    done = call(spellings["ragauge"], word, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line.startswith(f"error: {message}")


def test_what_is_no_word_goes_to_hydra(spellings, tmp_path) -> None:
    done = call(spellings["ragauge"], "~gate", "--cfg", "job", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "gate:" not in done.stdout
    refused = call(spellings["ragauge"], "n_token=5", cwd=tmp_path)
    assert refused.returncode == 2
    assert "Did you mean n_tokens?" in refused.stderr


def test_help_imports_neither_hydra_nor_anything_heavy(tmp_path) -> None:
    code = (
        "import sys; sys.argv = ['ragauge', 'help']\n"
        "from ragauge.commands.cli import main\n"
        "main()\n"
        "heavy = {'hydra', 'torch', 'mlflow', 'pandas', 'numpy', 'transformers', 'numba'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))\n"
    )
    assert "HEAVY []" in call(["-c", code], cwd=tmp_path).stdout


def test_a_reader_that_closes_the_pipe_of_help_sees_no_trace(tmp_path) -> None:
    done = subprocess.run(
        f"'{sys.executable}' -m ragauge --help | true", shell=True, cwd=tmp_path, env=clean_environment(),
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.stderr == ""


# --- where the configuration is -----------------------------------------------------------------------------


def test_a_folder_conf_beside_the_script_that_is_no_configuration_is_not_taken(tmp_path) -> None:
    script = console_script(tmp_path / "bin")
    (tmp_path / "bin" / "conf").mkdir()
    done = call([script], "--cfg", "job", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_relative_config_path_means_the_working_directory(spellings, tmp_path) -> None:
    shutil.copytree(ROOT / "conf", tmp_path / "ours")
    root = tmp_path / "ours" / "config.yaml"
    root.write_text(root.read_text(encoding="utf-8").replace("n_tokens: 1000", "n_tokens: 321"), "utf-8")
    options = (["--config-path", "ours"], ["--config-path=ours"], ["-cp", "ours"])
    for given, option in zip(spellings.values(), options, strict=True):
        done = call(given, "--cfg", "job", *option, cwd=tmp_path)
        assert "n_tokens: 321" in done.stdout, done.stderr
    missing = call(spellings["ragauge"], "--config-path", "nowhere", cwd=tmp_path)
    assert missing.returncode == 2
    assert missing.stderr == "error: --config-path nowhere: is no folder\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what pip installs of the wheel, which was built from the sdist; no checkout is near."""
    setuptools = pytest.importorskip("setuptools", minversion="77")
    folder = tmp_path_factory.mktemp("wheel")
    source, site = folder / "source", folder / "site"
    source.mkdir()
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("conf", "src"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    alone = ["--quiet", "--no-deps", "--no-index"]
    for command in (
        ["-c", f"from setuptools import build_meta; build_meta.build_sdist({str(folder)!r})"],
        ["-m", "pip", "wheel", *alone, "--no-build-isolation", "-w", str(folder), str(folder / "*.tar.gz")],
        ["-m", "pip", "install", *alone, "--target", str(site), str(folder / "*.whl")],
    ):
        given = [str(next(folder.glob(a.rpartition("/")[2]))) if "/*" in a else a for a in command]
        done = call(given, cwd=source)
        assert done.returncode == 0, (setuptools.__version__, done.stderr)
    shutil.rmtree(source)
    return site


@pytest.mark.slow
def test_an_installed_wheel_has_its_configuration_and_its_data_with_it(installed: Path, tmp_path) -> None:
    options = {path.relative_to(CONF) for path in CONF.rglob("*.yaml")}
    conf = installed / "ragauge" / "conf"
    assert {path.relative_to(conf) for path in conf.rglob("*.yaml")} == options
    package = ROOT / "src" / "ragauge"
    files = {path.relative_to(package) for path in package.rglob("*") if path.is_file()}
    files = {path for path in files if "__pycache__" not in path.parts}
    assert files <= {path.relative_to(installed / "ragauge") for path in installed.rglob("ragauge/**/*")}
    assert (installed / "hydra_plugins" / "ragauge_ray" / "launcher.py").is_file()
    assert not (installed / "hydra_plugins" / "__init__.py").exists(), "other packages have launchers there, too"
    [metadata] = installed.glob("ragauge-*.dist-info/METADATA")
    assert "License-Expression: Apache-2.0" in metadata.read_text("utf-8")
    assert (metadata.parent / "licenses" / "LICENSE").is_file()
    done = subprocess.run(
        [sys.executable, "-m", "ragauge", "--info", "searchpath"], cwd=tmp_path,
        env=clean_environment(PYTHONPATH=str(installed)), capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert re.search(rf"main\s*\|\s*file://{re.escape(str(conf))}\s", done.stdout), done


@pytest.mark.slow
def test_an_installed_wheel_sweeps_and_has_every_command_in_an_empty_folder(installed, tmp_path) -> None:
    environment = clean_environment(PYTHONPATH=str(installed))
    every = (
        "import sys\n"
        "import ragauge\n"
        "from ragauge.commands import known\n"
        "print(ragauge.__file__, file=sys.stderr)\n"
        "for name in known.COMMANDS:\n"
        "    try:\n"
        "        known.command(name)(['--help'])\n"
        "    except SystemExit as end:\n"
        "        print('HELP', name, end.code)\n"
    )
    for given, told in (
        ([str(installed / "bin" / "ragauge"), *SMALL], "2 job(s) done, 0 failed"),
        (["-c", every], "HELP compare 0"),
        *((["-m", "ragauge", name, "--help"], f"ragauge {name} ") for name in known.names() if name not in OWN),
    ):
        done = subprocess.run(
            [sys.executable, *given], cwd=tmp_path, env=environment, capture_output=True, text=True,
            timeout=900, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert told in done.stdout
        if given[0] == "-c":
            assert len(re.findall(r"^HELP \w+ 0$", done.stdout, re.M)) == len(known.COMMANDS)
            assert str(installed) in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {".ragauge", "mlruns", "multirun"}


def test_run_py_says_what_to_activate_where_ragauge_is_not_installed(tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-E", RUN, "help"], cwd=tmp_path, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.endswith("has no ragauge; in a clone: make setup, then . .venv/bin/activate")


# --- each command, on each command line, from another folder ----------------------------------------------


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sweep that the installed script ran where there is nothing of the source tree."""
    folder = tmp_path_factory.mktemp("elsewhere")
    done = Command(folder, *SMALL, program=console_script(folder / "bin")).wait()
    assert done.returncode == 0, done.stderr
    [of_sweep] = (folder / "multirun").glob("*/*")
    assert (of_sweep / "0" / "run.log").is_file()
    return of_sweep


# A piece of what each prints of a sweep; the others are tested where their tests are.
EXPECTED = {
    "compare": "2 runs of experiment sample, 6 topics.", "report": "report.html\n",
    "pool": "2 job(s) done, 0 failed",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("spelling", ["run.py", "-m ragauge", "ragauge"])
@pytest.mark.parametrize("command", EXPECTED)
def test_each_command_works_from_another_folder(
    command: str, spelling: str, swept: Path, spellings, tmp_path: Path
) -> None:
    assert {*known.COMMANDS} - {"stages"} == {*EXPECTED}
    home = swept.parents[2]
    arguments = [str(swept)]
    program = {"run.py": RUN, "-m ragauge": MODULE, "ragauge": spellings["ragauge"][0]}[spelling]
    environment = clean_environment(MLFLOW_TRACKING_URI=f"sqlite:///{home}/mlruns/mlflow.db")
    done = Command(tmp_path, command, *arguments, program=program, environment=environment).wait()
    assert done.returncode == 0, done.stderr
    assert EXPECTED[command] in done.stdout
    assert list(tmp_path.iterdir()) == []
    usage = call(spellings[spelling], command, "--help", cwd=tmp_path).stdout if spelling == "ragauge" else ""
    assert not usage or usage.startswith((f"usage: ragauge {command} ", f"ragauge {command} "))


@pytest.mark.slow
def test_workers_of_joblib_find_the_task_of_the_installed_script(tmp_path: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    script = console_script(tmp_path / "bin")
    parallel = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    done = call([script], *SMALL, *parallel, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 job(s) done, 0 failed" in done.stdout


# --- texts ----------------------------------------------------------------------------------------------


def test_no_text_names_a_module_as_a_command() -> None:
    named = []
    for name in ("src", "docs", "conf", "examples", "benchmarks", "README.md", "CHANGELOG.md", "Makefile"):
        place = ROOT / name
        files = [place] if place.is_file() else [p for p in place.rglob("*") if p.suffix in (".py", ".md", ".yaml")]
        named += [str(f) for f in files if re.search(r"-m ragauge\.\w", f.read_text(encoding="utf-8"))]
    assert named == []
