"""Trying mutants: which tests come to each one's place, and which mutants none of these notices."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from planting.mirrors import TESTS, importing, tests_of
from planting.places import ROOT, Mutant, with_probes

_PLUGIN = "mutants_reached"
_SHARED = ("conf", "run.py", "pyproject.toml", "docs", "examples", "README.md", "benchmarks")
# Beside four times what the tests took without a bug: a fixture that other tests had made may be made anew.
_GRACE = 60.0


@dataclass(frozen=True)
class Reach:
    """What a run without a bug told: seconds by test (node id), and the tests that come to a place.

    Of a number that is not in `tests` nothing is known.
    """

    seconds: Mapping[str, float]
    tests: Mapping[int, frozenset[str]]

    def of(self, number: int, mutant: Mutant) -> list[str]:
        """The tests that are tried on a mutant: first those whose file imports its module, the quickest first.

        Of those that ran (`tests_of`) these are the ones that come to its place; all, where that is not known.
        """
        itself = {f"{path.relative_to(ROOT)}" for path in importing(mutant.file)}
        return sorted(
            (test for test in self.seconds if test in self.tests.get(number, self.seconds)),
            key=lambda test: (test.split("::")[0] not in itself, self.seconds[test]),
        )


class Copy:
    """A copy of src/, in which tests run on what is written there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = folder / "src"
        left_out = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / "src", self.source, ignore=left_out)
        shutil.copy(Path(__file__).with_name("reached.py"), self.source / f"{_PLUGIN}.py")
        for shared in _SHARED:
            (folder / shared).symlink_to(ROOT / shared)

    def place(self, file: Path) -> Path:
        return self.source / file.relative_to(ROOT / "src")

    def start(
        self, files: Sequence[Path], fresh: bool, *options: str, **environment: str
    ) -> multiprocessing.process.BaseProcess:
        """A process that runs the tests quietly, and ends with pytest's exit code.

        What Numba compiled is kept for the next run, unless it may be of other code (`fresh`).
        """
        compiled = self.folder / ("compiled_once" if fresh else "compiled")
        for folder in (self.folder / "tmp", self.folder / "compiled_once"):
            shutil.rmtree(folder, ignore_errors=True)
        environment["PYTHONPATH"] = f"{self.source}{os.pathsep}{TESTS}"
        environment["NUMBA_CACHE_DIR"] = str(compiled)
        given = ["-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", _PLUGIN]
        arguments = [*given, f"--basetemp={self.folder}/tmp", *options, *map(str, files)]
        child = multiprocessing.get_context("fork").Process(
            target=_run, args=(str(self.source), f"{self.folder}/said", arguments, environment)
        )
        child.start()
        return child

    def said(self) -> str:
        return (self.folder / "said").read_text(encoding="utf-8", errors="replace")[-3000:]


def _run(source: str, said: str, arguments: list[str], environment: Mapping[str, str]) -> None:
    os.setsid()  # what the tests start ends with it
    to = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(to, 1)
    os.dup2(to, 2)
    os.environ.update(environment)
    sys.path.insert(0, source)
    import pytest

    os._exit(int(pytest.main(arguments)))


def _end(child: multiprocessing.process.BaseProcess) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid or 0, signal.SIGKILL)
    child.join()


def reach(chosen: Sequence[Mutant], at_once: int, own: bool) -> Reach:
    """Runs all tests that may notice the mutants, without a bug; prints those that fail, and leaves them out."""
    files = sorted({path for mutant in chosen for path in tests_of(mutant.file, own)})
    by_file: dict[Path, dict[int, Mutant]] = {}
    for number, mutant in enumerate(chosen):
        by_file.setdefault(mutant.file, {})[number] = mutant
    probed: set[int] = set()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        copy = Copy(Path(folder))
        for file, numbered in by_file.items():
            text, numbers = with_probes(file, numbered)
            copy.place(file).write_text(text, encoding="utf-8")
            probed |= numbers
        told = Path(folder) / "reached"
        child = copy.start(files, True, "-n", str(at_once if at_once > 1 else 0), MUTANTS_REACHED=str(told))
        child.join()
        _end(child)
        if not told.exists():
            raise SystemExit(f"no test ran:\n{copy.said()}")
        lines = [json.loads(line) for line in told.read_text(encoding="utf-8").splitlines()]
    ended = {line["test"]: line for line in lines if "test" in line}
    for test, line in ended.items():
        if line["failed"]:
            print(f"left out, for it fails without a bug: {test}", flush=True)
    reached: dict[int, set[str]] = {number: set() for number in probed}
    for line in lines:
        if "place" in line:
            reached[line["place"]].add(line["by"])
    tests = {
        number: frozenset(test for test, line in ended.items() if by & {test, *line["fixtures"]})
        for number, by in reached.items()
        if "" not in by  # outside of any test
    }
    return Reach({test: line["seconds"] for test, line in ended.items() if not line["failed"]}, tests)


@dataclass
class _Trial:
    mutant: Mutant
    copy: Copy
    child: multiprocessing.process.BaseProcess
    n_tests: int
    began: float
    limit: float

    def ended(self) -> str | None:
        """How the tests ended: passed, failed or late; None while they run."""
        late = time.monotonic() - self.began > self.limit
        if self.child.is_alive() and not late:
            return None
        code = self.child.exitcode
        _end(self.child)
        shutil.copyfile(self.mutant.file, self.copy.place(self.mutant.file))
        return "late" if code is None else "passed" if code in (0, 5) else "failed"


def survivors(chosen: Sequence[Mutant], at_once: int, own: bool) -> list[Mutant]:
    """The mutants that no test notices (`tests_of`), in their order."""
    if not chosen:
        return []
    began = time.monotonic()
    known = reach(chosen, at_once, own)
    print(f"{len(known.seconds)} tests without a bug in {time.monotonic() - began:.0f} s", flush=True)
    alive: set[Mutant] = set()
    waiting = list(enumerate(chosen))
    with contextlib.ExitStack() as stack:
        folders = [tempfile.TemporaryDirectory(ignore_cleanup_errors=True) for _ in range(at_once)]
        free = [Copy(Path(stack.enter_context(folder))) for folder in folders]
        running: list[_Trial] = []
        while waiting or running:
            while waiting and free:
                number, mutant = waiting.pop(0)
                tests = known.of(number, mutant)
                if tests:
                    running.append(_start(mutant, free.pop(), tests, sum(known.seconds[test] for test in tests)))
                else:
                    alive.add(mutant)
                    print(f"no test comes to line {mutant.line}, {mutant.name}", flush=True)
            for trial in list(running):
                if (how := trial.ended()) is not None:
                    running.remove(trial)
                    free.append(trial.copy)
                    if how == "passed":
                        alive.add(trial.mutant)
                    _print(trial, how)
            time.sleep(0.1)
    return [mutant for mutant in chosen if mutant in alive]


def _start(mutant: Mutant, copy: Copy, tests: Sequence[str], seconds: float) -> _Trial:
    wanted = copy.folder / "tests"
    wanted.write_text("\n".join(tests), encoding="utf-8")
    copy.place(mutant.file).write_text(mutant.source(), encoding="utf-8")
    files = [ROOT / file for file in dict.fromkeys(test.split("::")[0] for test in tests)]
    jitted = "from numba" in mutant.file.read_text(encoding="utf-8")
    child = copy.start(files, jitted, "-x", MUTANTS_TESTS=str(wanted))
    return _Trial(mutant, copy, child, len(tests), time.monotonic(), _GRACE + 4 * seconds)


def _print(trial: _Trial, how: str) -> None:
    seconds = time.monotonic() - trial.began
    mutant = trial.mutant
    print(f"{how} in {seconds:.0f} s, {trial.n_tests} tests: line {mutant.line}, {mutant.name}", flush=True)
