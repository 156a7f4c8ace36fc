"""Topics for training, for validation, and of another domain."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragauge.contract.datasets import Source
from ragauge.contract.errors import ConfigError, DataError, RagaugeError
from ragauge.contract.loading import build
from ragauge.experiment.stages.components import instantiate_components
from ragauge.experiment.stages.pipeline import Pipeline
from ragauge.plugins.training.contract import TrainingData
from ragauge.plugins.training.jobs.leaks import leaked, sharing_documents
from ragauge.plugins.training.jobs.split_dataset import SplitDataset, TopicsLeftOut
from ragauge.store import Store

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from ragauge.contract.stages import Components

log = logging.getLogger(__name__)

_TOLD = 3  # leaks that an error names
_N_TOKENS = 1000  # contexts are not laid out; a job has a budget


@dataclass(frozen=True)
class Splits:
    """A job over each side, with the model before the training.

    shared: validation topics that share a relevant document with the training. left_out: training topics that
    were left out, since the validation has their question.
    """

    training: Pipeline
    validation: Pipeline
    elsewhere: Pipeline | None
    shared: frozenset[str]
    left_out: tuple[str, ...]

    def values(self) -> dict[str, float]:
        """Numbers of topics on each side and of topics shared by both, as metrics."""
        return {
            "training_topics": len(self.training.frame("topics")),
            "training_topics_left_out": len(self.left_out),
            "validation_topics": len(self.validation.frame("topics")),
            "validation_topics_sharing_documents": len(self.shared),
            **({"elsewhere_topics": len(self.elsewhere.frame("topics"))} if self.elsewhere else {}),
        }


def load_splits(cfg: DictConfig) -> Splits:
    """Loads and compares the sides: the config's `dataset`, `validation` and `elsewhere`.

    ConfigError for one that cannot be read; DataError where a validation question is in the training and
    `leaks` is error, and where a side has no topics.
    """
    from omegaconf import OmegaConf

    components = instantiate_components(cfg)
    spec: Any = OmegaConf.to_container(cfg.dataset, resolve=True, throw_on_missing=True)
    other: Any = OmegaConf.to_container(cfg.validation, resolve=True)
    sources: tuple[Any, ...]
    if other:
        unknown = sorted(set(other) - set(spec))
        if unknown:
            raise ConfigError(
                f"validation.{unknown[0]}: dataset {components.dataset.name} has no such key; it has: "
                f"{', '.join(sorted(key for key in spec if not key.startswith('_')))}"
            )
        sources = (components.dataset, _source("validation", {**spec, **other}))
    else:
        share, seed = float(cfg.validation_share), int(cfg.seed)
        sources = tuple(SplitDataset(components.dataset, side, share, seed) for side in ("training", "validation"))
    store = Store(Path(cfg.store))
    training, validation = (_pipeline(cfg, components, source, store) for source in sources)
    found = leaked(training.frame("topics"), validation.frame("topics"))
    left_out: tuple[str, ...] = ()
    if len(found):
        if cfg.leaks == "error":
            pairs = [f"{a} is {b}" for a, b in found[["training_qid", "validation_qid"]].to_numpy()[:_TOLD]]
            n = found["validation_qid"].nunique()
            raise DataError(
                f"{n} of {len(validation.frame('topics'))} validation questions stand in the training, word "
                f"for word or nearly ({'; '.join(pairs)}{'; ...' if len(found) > _TOLD else ''}): leaks=drop "
                "leaves them out of the training"
            )
        left_out = tuple(sorted(set(found["training_qid"])))
        if len(left_out) == len(training.frame("topics")):
            raise DataError(
                f"all {len(left_out)} training questions stand in the validation, so that leaks=drop leaves "
                "none: validation.<key> must name other topics"
            )
        training = _pipeline(
            cfg,
            components,
            TopicsLeftOut(sources[0], left_out),  # pyrefly: ignore[bad-argument-type]
            store,  # pyrefly: ignore[bad-argument-type]
        )
        log.info("%d training questions stand in the validation, and are left out of the training",
                 len(left_out))  # fmt: skip
    shared = sharing_documents(training.frame("evidence"), validation.frame("evidence"))
    if shared:
        log.info(
            "%d of %d validation topics share a relevant document with the training; results stand with and "
            "without them", len(shared), len(validation.frame("topics")),
        )  # fmt: skip
    elsewhere = None
    if cfg.elsewhere is not None:
        far: Any = OmegaConf.to_container(cfg.elsewhere, resolve=True, throw_on_missing=True)
        elsewhere = _pipeline(cfg, components, _source("elsewhere", far), store)
        known = leaked(training.frame("topics"), elsewhere.frame("topics"))["validation_qid"].nunique()
        if known:
            log.warning(
                "elsewhere: %d of %d topics have a question of the training, so that this is no other domain",
                known, len(elsewhere.frame("topics")),
            )  # fmt: skip
    return Splits(training, validation, elsewhere, shared, left_out)


def training_data(pipeline: Pipeline) -> TrainingData:
    """The frames of a job that a trainer sees."""
    return TrainingData(*(pipeline.frame(name) for name in ("topics", "evidence", "chunks", "run")))


def _source(key: str, spec: Mapping[str, Any]) -> Any:
    try:
        return build(key, spec, {}, Source)
    except RagaugeError:
        raise
    except Exception as error:
        raise ConfigError(f"{key}: {type(error).__name__}: {error}") from error


def _pipeline(cfg: DictConfig, components: Components, source: Any, store: Store) -> Pipeline:
    changed = replace(components, dataset=source)
    return Pipeline(changed, store, _N_TOKENS, (_N_TOKENS,), measures=tuple(cfg.measures))
