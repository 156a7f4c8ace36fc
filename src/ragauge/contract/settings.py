"""The settings of a job: the keys of its configuration, their types and defaults.

The class is Hydra's schema, so that an unknown key or a value of the wrong type is refused before any job of a sweep
starts. `ragauge.experiment.setup.config` checks the values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ragauge.contract.families import FAMILIES, PRIMARY
from ragauge.contract.groups import RANKINGS

_MISSING: Any = "???"  # OmegaConf's mark of a value that has to be given


@dataclass
class Tracking:
    """MLflow's place; null means the environment (MLFLOW_TRACKING_URI), then mlruns/."""

    uri: str | None = None
    experiment: str | None = None
    note: str | None = None
    evaluation: Any = "auto"
    models: bool = False


@dataclass
class Estimation:
    """The predictor's rows and fit."""

    features: list[str] = field(default_factory=lambda: ["ir_score"])
    spline: bool = False
    calibrate: bool = False


@dataclass
class ZoneGuarantee:
    """The promise of a zone of the IR score: at most a share alpha missed, with this confidence."""

    alpha: float = 0.1
    confidence: float = 0.95


@dataclass
class Foreseen:
    """The target of the measures of a sweep."""

    target: str | None = None


@dataclass
class Reported:
    """The families of a sweep's tests, and its primary measures."""

    family: str = FAMILIES[0]
    primary: list[str] = field(default_factory=lambda: list(PRIMARY))


@dataclass
class Raced:
    """The rule and measure by which a sweep with `hydra/sweeper=race` drops a system."""

    measure: str = "right"
    margin: float = 0.03
    alpha: float = 0.05
    first: int = 60
    batch: int = 20


@dataclass
class RecordedSystem:
    """The file of a recorded system, the system's name in it, and the treatment of missing rows."""

    path: str | None = None
    docs: str | None = None
    system: str | None = None
    on_missing: str = "raise"


@dataclass
class SharedServer:
    """The server that `openai_compatible` options of llm, judge and evaluator share."""

    base_url: str = "http://localhost:8000/v1"
    model: str | None = None
    api_key_env: str | None = "RAGAUGE_API_KEY"


@dataclass
class Settings:
    """The keys of conf/config.yaml. A config group's value is the mapping that its component is built from."""

    dataset: Any = _MISSING
    chunker: Any = _MISSING
    embedder: Any = _MISSING
    tokenizer: Any = _MISSING
    rewriter: Any = _MISSING
    retriever: Any = _MISSING
    reranker: Any = _MISSING
    expander: Any = _MISSING
    compressor: Any = _MISSING
    order: Any = _MISSING
    measure: Any = _MISSING
    llm: Any = _MISSING
    evaluator: Any = _MISSING
    answers: Any = field(default_factory=dict)
    judge: Any = _MISSING
    engine: Any = None
    server: SharedServer = field(default_factory=SharedServer)
    recorded: RecordedSystem = field(default_factory=RecordedSystem)
    service: Any = None
    race: Raced = field(default_factory=Raced)
    language: str = "english"
    n_tokens: int = 1000
    n_grid: list[int] = field(default_factory=list)
    measures: list[str] = field(default_factory=lambda: list(RANKINGS))
    slices: list[Any] = field(default_factory=list)
    slice_weights: dict[str, Any] = field(default_factory=dict)
    cluster: str | None = None
    failures: str = "causes"
    seed: int = 0
    bootstrap: int = 1000
    max_missing_share: float = 0.05
    estimate: Estimation = field(default_factory=Estimation)
    zones: ZoneGuarantee = field(default_factory=ZoneGuarantee)
    foresight: Foreseen = field(default_factory=Foreseen)
    report: Reported = field(default_factory=Reported)
    names: Any = None
    human_labels: str | None = None
    human_labels_from: str | None = None
    human_evidence: str | None = None
    sample_target: str = "population"
    predictor: str | None = None
    predictor_mismatch: str = "refuse"
    register_predictor: str | None = None
    trust: bool = False
    gate: dict[str, Any] = field(default_factory=dict)
    trace: bool = False
    measure_latency: bool = False
    latency_topics: int = 50
    dry_run: bool = False
    store: str = _MISSING
    tracking: Tracking = field(default_factory=Tracking)
