"""Configs of a sweep's jobs: copies for other budgets are what Hydra itself composes."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import ConfigCompositionException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from ragauge.experiment import config
from ragauge.experiment.budgets import BudgetCopies

CONF = Path(__file__).resolve().parents[2] / "conf"


class Counting:
    """Hydra's loader, which counts what it composes."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.composed = 0

    def load_sweep_config(self, master: DictConfig, overrides: list[str]) -> DictConfig:
        self.composed += 1
        found: DictConfig = self.loader.load_sweep_config(master, overrides)
        return found

    def get_sources(self) -> Any:
        return self.loader.get_sources()


@pytest.fixture
def loader() -> Iterator[Counting]:
    config.register()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        yield Counting(hydra.config_loader)


def master(loader: Counting, *overrides: str) -> DictConfig:
    found: DictConfig = loader.loader.load_configuration("config", list(overrides), RunMode.MULTIRUN)
    return found


def same(a: DictConfig, b: DictConfig) -> bool:
    def plain(cfg: DictConfig) -> tuple[Any, ...]:
        return (
            OmegaConf.to_yaml(cfg),
            OmegaConf.to_container(cfg.hydra.job, resolve=True),
            OmegaConf.to_container(
                OmegaConf.masked_copy(cfg, [k for k in cfg if k != "hydra"]), resolve=True
            ),
        )

    return plain(a) == plain(b)


@pytest.mark.parametrize(
    "hydra",
    [
        [],
        ["hydra.job.config.override_dirname.item_sep=__", "hydra.job.config.override_dirname.kv_sep=-"],
        ["hydra.job.config.override_dirname.exclude_keys=[n_tokens]"],
    ],
)
def test_jobs_at_other_budgets_are_what_hydra_composes(loader: Counting, hydra: list[str]) -> None:
    root = master(loader, *hydra)
    copies = BudgetCopies(loader)  # type: ignore[arg-type]
    jobs = [
        [f"retriever={retriever}", f"n_tokens={n}", "seed=3"]
        for retriever in ("bm25", "sim")
        for n in (100, 0, 1000)
    ]
    found = [copies.load_sweep_config(root, job) for job in jobs]
    assert loader.composed == 2
    for job, one in zip(jobs, found, strict=True):
        assert same(one, loader.load_sweep_config(root, job)), job
        assert OmegaConf.is_struct(one)
        assert f"n_tokens={one.n_tokens}" in job


def test_a_copy_is_nobody_elses(loader: Counting) -> None:
    root = master(loader)
    copies = BudgetCopies(loader)  # type: ignore[arg-type]
    first = copies.load_sweep_config(root, ["n_tokens=100"])
    first.hydra.job.id = "0"
    first.seed = 9
    assert same(
        copies.load_sweep_config(root, ["n_tokens=200"]), loader.load_sweep_config(root, ["n_tokens=200"])
    )


@pytest.mark.parametrize(
    "jobs",
    [
        [["seed=1"], ["seed=2"]],
        [["n_tokens=0100"], ["n_tokens=0200"]],
        [["++n_tokens=100"], ["++n_tokens=200"]],
        [["n_tokens=100", "n_tokens=300"], ["n_tokens=200", "n_tokens=300"]],
    ],
)
def test_what_is_not_one_plain_budget_is_composed_by_hydra(loader: Counting, jobs: list[list[str]]) -> None:
    root = master(loader)
    copies = BudgetCopies(loader)  # type: ignore[arg-type]
    for job in jobs:
        found = copies.load_sweep_config(root, job)
        assert same(found, loader.loader.load_sweep_config(root, job))
    assert loader.composed == len(jobs)


def test_an_override_that_cannot_be_is_still_an_error(loader: Counting) -> None:
    copies = BudgetCopies(loader)  # type: ignore[arg-type]
    with pytest.raises(ConfigCompositionException):
        copies.load_sweep_config(master(loader), ["n_tokens=100", "no_such_key=1"])


def test_other_processes_get_a_loader_of_their_own(loader: Counting) -> None:
    root = master(loader)
    copies = BudgetCopies(loader.loader)
    copies.load_sweep_config(root, ["n_tokens=100"])
    again = pickle.loads(pickle.dumps(copies))
    assert again.get_sources()
    assert same(
        again.load_sweep_config(root, ["n_tokens=200"]),
        loader.load_sweep_config(root, ["n_tokens=200"]),
    )
