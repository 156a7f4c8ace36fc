"""A job's configuration is composed once; a sweep is what it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig

from ragauge.commands import given
from ragauge.commands.conf import as_text
from ragauge.commands.main import run_composed

TOLD: list[tuple[str, int, list[str], str]] = []


def tell(cfg: DictConfig) -> None:
    hydra = HydraConfig.get()
    TOLD.append((hydra.mode.name, cfg.n_tokens, [*hydra.overrides.task], hydra.runtime.choices.retriever))


@pytest.fixture
def composed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The modes of the compositions, as they are made."""
    found: list[str] = []
    whole = ConfigLoaderImpl.load_configuration

    def load(self: ConfigLoaderImpl, config_name, overrides, run_mode, *more, **named):  # type: ignore[no-untyped-def]
        found.append(run_mode.name)
        return whole(self, config_name, overrides, run_mode, *more, **named)

    monkeypatch.setattr(ConfigLoaderImpl, "load_configuration", load)
    monkeypatch.chdir(tmp_path)
    TOLD.clear()
    return found


def test_a_job_is_composed_once(composed: list[str]) -> None:
    run_composed("config", tell, ["retriever=none", "n_tokens=7"])
    assert TOLD == [("RUN", 7, ["retriever=none", "n_tokens=7"], "none")]
    assert composed == ["RUN"]


@pytest.mark.parametrize("asked", [["-m"], ["hydra.mode=MULTIRUN"]])
def test_a_sweep_is_one_whoever_asks_for_it(composed: list[str], asked: list[str]) -> None:
    run_composed("config", tell, [*asked, "retriever=none", "n_tokens=7,8", "~hydra.callbacks.sweep"])
    assert [(mode, n) for mode, n, _, _ in TOLD] == [("MULTIRUN", 7), ("MULTIRUN", 8)]


@pytest.mark.parametrize(
    "path", [r"C:\Users\a b\new\x.jsonl", "C:\\end\\", r"\\server\it's", 'a\\"b', r"D:\a, b\[1]={x}$", '"', "\\\\"]
)
def test_a_path_with_spaces_and_backslashes_reaches_the_configuration_as_it_is(path: str) -> None:
    [from_python] = given.overrides({"recorded.path": path}, {}, swept=False)
    for override in (from_python, f"recorded.path={as_text(path)}"):
        assert str(OverridesParser.create().parse_override(override).value()) == path
