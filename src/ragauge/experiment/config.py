"""The root of the configuration: its keys, types and allowed values.

Registered as Hydra's schema, so that an unknown key or a value of the wrong type is refused before any job
of a sweep starts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from omegaconf import MISSING

from ragauge.contract.errors import ConfigError
from ragauge.contract.groups import FEATURES
from ragauge.experiment.packages import PackageSearchPath

MAX_N_TOKENS = 1_000_000


@dataclass
class Tracking:
    """Where MLflow writes; null means the environment (MLFLOW_TRACKING_URI), then mlruns/."""

    uri: str | None = None
    experiment: str | None = None
    note: str | None = None


@dataclass
class Estimation:
    """What the predictor is fitted on, and how."""

    features: list[str] = field(default_factory=lambda: ["ir_score"])
    spline: bool = False
    calibrate: bool = False


@dataclass
class Config:
    """The keys of conf/config.yaml."""

    dataset: Any = MISSING
    chunker: Any = MISSING
    embedder: Any = MISSING
    tokenizer: Any = MISSING
    retriever: Any = MISSING
    measure: Any = MISSING
    llm: Any = MISSING
    judge: Any = MISSING
    n_tokens: int = 1000
    n_grid: list[int] = field(default_factory=list)
    seed: int = 0
    bootstrap: int = 1000
    max_missing_share: float = 0.05
    estimate: Estimation = field(default_factory=Estimation)
    human_labels: str | None = None
    predictor: str | None = None
    predictor_mismatch: str = "refuse"
    register_predictor: str | None = None
    gate: dict[str, float] = field(default_factory=dict)
    trace: bool = False
    dry_run: bool = False
    store: str = MISSING
    tracking: Tracking = field(default_factory=Tracking)


def register() -> None:
    """Makes known to Hydra `Config`, which conf/config.yaml starts from, and the configs of packages."""
    ConfigStore.instance().store(name="schema", node=Config)
    Plugins.instance().register(PackageSearchPath)


def check_values(cfg: Any) -> None:
    """ConfigError for a root value out of its range; types are checked by the schema."""
    if not 0 <= cfg.n_tokens <= MAX_N_TOKENS:
        raise ConfigError(f"n_tokens={cfg.n_tokens}: allowed are 0 (no context) to {MAX_N_TOKENS:,} tokens")
    for n in cfg.n_grid:
        if not 1 <= n <= MAX_N_TOKENS:
            raise ConfigError(f"n_grid holds {n}: allowed are 1 to {MAX_N_TOKENS:,} tokens")
    unknown = [name for name in cfg.estimate.features if name not in FEATURES]
    if unknown or not cfg.estimate.features:
        raise ConfigError(
            f"estimate.features={list(cfg.estimate.features)}: allowed are {', '.join(FEATURES)}"
        )
    if cfg.estimate.spline and "ir_score" not in cfg.estimate.features:
        raise ConfigError("estimate.spline=true bends ir_score, which is not in estimate.features")
    if cfg.predictor_mismatch not in ("refuse", "allow"):
        raise ConfigError(f"predictor_mismatch={cfg.predictor_mismatch}: allowed are refuse, allow")
    if not 0 <= cfg.max_missing_share <= 1:
        raise ConfigError(f"max_missing_share={cfg.max_missing_share}: allowed are 0 to 1")
    if cfg.bootstrap < 0 or cfg.bootstrap > 100_000:
        raise ConfigError(f"bootstrap={cfg.bootstrap}: allowed are 0 (no intervals) to 100,000 replicates")


def settle(cfg: Any) -> None:
    """Writes what `embedder.backend=auto` is here into the config: what is logged then says what was run."""
    from omegaconf import OmegaConf

    from ragauge.retrieval.embedders.sentence_transformers import SentenceTransformerEmbedder, settle_backend

    part = cfg.embedder
    ours = f"{SentenceTransformerEmbedder.__module__}.{SentenceTransformerEmbedder.__qualname__}"
    if part.get("_target_") == ours and part.get("backend", "auto") == "auto":
        OmegaConf.update(part, "backend", settle_backend("auto", part.get("device")), force_add=True)
