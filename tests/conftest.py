"""Fixtures that several rooms share: stand-ins that satisfy the real Protocols, and a store of their own."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

import made_database
from hash_embedder import HashEmbedder
from processes import TWO_BY_TWO, run
from ragauge.contract.component import Tools
from ragauge.store import Store
from ragauge.texts.tokenizers import WordTokenizer
from servers import database, postgres_server
from small_pipeline import SmallPipelines
from standing import Standing

# Jobs of tests write no evaluation runs into MLflow unless they ask for them.
os.environ.setdefault("RAGAUGE_EVALUATION", "false")
# Most tests count the calls of a judge: those of its probes are asked where a test asks for them.
os.environ.setdefault("RAGAUGE_PROBES", "false")
# Exported models are those of all tests, and of the next ones; a test of exports has a place of its own.
os.environ.setdefault("RAGAUGE_CACHE", str(Path(__file__).resolve().parents[1] / ".pytest_cache" / "ragauge"))

_OF_MODELS = ("vectors",)  # what a store keeps of embedding models

# Files whose tests share something that takes seconds to make and so run in one process, the slowest first.
_TOGETHER = (
    "test_sweep.py", "test_example_package.py", "test_team_server.py", "test_documented_metrics.py", "test_groups.py",
    "test_comparison.py", "test_rerun.py", "test_onnx_backend.py", "test_html_report.py", "test_store_cli.py",
    "test_track.py", "test_real_server.py", "test_extension_seams.py", "test_fusion_ranx.py", "test_annotation.py",
)  # fmt: skip

# Files whose quick tests fork commands, the first that of `two_by_two`. They run in one process, since each process
# has to import everything before its first fork.
_FORKING = (
    "test_sweep.py", "test_ranking_columns.py", "test_recorded_systems.py", "test_keys_on_disk.py", "test_refusals.py",
    "test_cli.py",
)  # fmt: skip

# How long an example takes, or making it, says more of the machine than of the code. The examples of a test are the
# same in each run, so that a test fails by the code alone; `--hypothesis-profile=default` draws others.
settings.register_profile("ragauge", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ragauge")


def pytest_configure(config: pytest.Config) -> None:
    """Only the process that reports says where the run stands."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not hasattr(config, "workerinput"):

        def write(line: str) -> None:
            reporter.ensure_newline()
            reporter.write_line(line)

        config.pluginmanager.register(Standing(write), "standing")


@pytest.hookimpl(hookwrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collects without looking for garbage: all that is made stays, and each look costs a third of a second.

    Tests look for it a tenth as often as Python would: most of what they make goes without.
    """
    gc.disable()
    yield
    gc.freeze()
    gc.set_threshold(7_000, 20, 20)
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files of one process come first, then slow tests: one that came last would leave the others idle."""

    order = list(dict.fromkeys([*_FORKING, *_TOGETHER]))

    def rank(item: pytest.Item) -> tuple[int, bool]:
        place = order.index(item.path.name) if item.path.name in order else len(order)
        return place, item.get_closest_marker("slow") is None

    items.sort(key=rank)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hands out the tests one by one in their order, but for the files whose tests stay together."""
    from xdist.scheduler import LoadScopeScheduling

    quick = config.option.markexpr == "not slow"

    class Scheduler(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::", 1)[0]
            name = file.rsplit("/", 1)[-1]
            if quick and name in _FORKING:
                return "forking"
            return file if name in _TOGETHER else nodeid

    config.option.loadscopereorder = False
    return Scheduler(config, log)


@pytest.fixture
def hash_embedder() -> HashEmbedder:
    return HashEmbedder()


@pytest.fixture
def word_tokenizer() -> WordTokenizer:
    return WordTokenizer()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def tools(store: Store, hash_embedder: HashEmbedder, word_tokenizer: WordTokenizer) -> Tools:
    return Tools(store=store, embedder=hash_embedder, tokenizer=word_tokenizer)


@pytest.fixture
def small(tmp_path: Path, hash_embedder: HashEmbedder) -> SmallPipelines:
    return SmallPipelines(tmp_path, hash_embedder)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """URL of a PostgreSQL server, for tests that make databases of their own there."""
    with postgres_server() as url:
        yield url


@pytest.fixture
def empty_postgres(postgres: str) -> Iterator[str]:
    """URL of an empty PostgreSQL database for one test: what another test paid would count in its budget."""
    with database(postgres) as url:
        yield url


@pytest.fixture(scope="session", autouse=True)
def empty_database(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> None:
    """MLflow's databases are copies of one that is made once for all processes of the tests."""
    base = tmp_path_factory.getbasetemp()
    made_database.copy_from((base if worker_id == "master" else base.parent) / "empty.db")


@pytest.fixture(scope="session")
def two_by_two(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder in which a small sweep ran, once for all processes of the tests.

    No test writes there, or starts a job there: another process may read it meanwhile.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "two_by_two"
    models = folder.with_suffix(".models")
    with FileLock(folder.with_suffix(".lock")):
        if not models.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            done = run(folder, *TWO_BY_TWO)
            assert done.returncode == 0, done.stderr
            kept = [part for name in _OF_MODELS if (part := folder / ".ragauge" / name).exists()]
            for part in kept:
                shutil.copytree(part, models.with_suffix(".draft") / part.name)
            models.with_suffix(".draft").rename(models)
    return folder


@pytest.fixture(scope="session")
def bring_models(two_by_two: Path) -> Callable[..., None]:
    """Makes a store that has the embedding model of that sweep and, unless told otherwise, its vectors."""

    def bring(store: Path, vectors: bool = True) -> None:
        left_out = None if vectors else shutil.ignore_patterns("vectors")
        # Links, for what is there is never changed.
        shutil.copytree(two_by_two.with_suffix(".models"), store, left_out, copy_function=os.link)

    return bring
