"""`trainer=judge`: three yes-or-no classifiers of passages and answers, trained on synthetic examples (ARES)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.checks import require, require_count, require_flag, require_number, require_text
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.contract.topics import QUESTIONS
from ragauge.plugins.training.ares.interactions import INTERACTIONS
from ragauge.plugins.training.ares.network import PAIRS, TEXTS, JudgeNetwork, load_encoder, n_features
from ragauge.plugins.training.contract import MODEL, Trained, Trainer, TrainingData, TrainingTools
from ragauge.plugins.training.trainers._judge_tuning import Tuning, tune
from ragauge.plugins.training.trainers._loop import settle_precision
from ragauge.plugins.training.trainers.triples import Example, examples, table_of
from ragauge.retrieval.pretrained import hub_folder, model_digest
from ragauge.texts.model_files import model_path

_FILES = ("*.json", "*.txt", "*.model", "*.safetensors")
_LEAST = 2  # examples of each class
_TEMPERATURES = (0.1, 20.0)


@option("trainer/judge")
class JudgeTrainer(Trainer):
    """Trains one network with a head for each of the questions (ragauge.contract.topics).

    base: an encoder by name or folder. tune: true, the encoder reads both texts together and is trained, too. false, it
    stays as it is and reads each by itself, and only the heads are fitted (logistic regressions, `penalty` being their
    C). per_topic, strong: as of `triples.examples` of this package. max_length: tokens that the encoder reads of a
    pair, or of a text. looks: how often the held-out examples are looked at; the state of the lowest loss is kept.
    precision: that of the training, bf16 or f32; "auto" is bf16 where the device computes with it. Probabilities are
    calibrated on the held-out topics by a temperature for each question (Guo et al. 2017, arXiv:1706.04599).
    Source: ARES (Saad-Falcon et al. 2023, arXiv:2311.09476), section 3.2.
    """

    component = "judge"
    version = 3
    kind = "judge"

    model: str = CONF
    tune: bool = CONF
    questions: Sequence[str] = CONF
    per_topic: int = CONF
    strong: float = CONF
    epochs: int = CONF
    batch_size: int = CONF
    lr: float = 5e-5
    max_length: int = CONF
    precision: str = CONF
    looks: int = CONF
    penalty: float = CONF
    device: str = CONF
    threads: int | None = runtime(CONF)

    def __post_init__(self) -> None:
        require_text("trainer.model", self.model, "names of encoders, and paths of their folders")
        asked = self.questions
        ok = isinstance(asked, (list, tuple)) and bool(asked) and all(one in QUESTIONS for one in asked)
        ok = ok and len(set(asked)) == len(asked)
        require("trainer.questions", asked, ok, f"lists of {', '.join(QUESTIONS)}, each once")
        object.__setattr__(self, "questions", tuple(one for one in QUESTIONS if one in asked))
        for key in ("per_topic", "epochs", "batch_size", "looks"):
            require_count(f"trainer.{key}", getattr(self, key))
        require_count("trainer.max_length", self.max_length, 8, most=8192)
        require_count("trainer.threads", self.threads, null="torch's own choice")
        require_number("trainer.strong", self.strong, 0, 1)
        require_number("trainer.lr", self.lr, 0, 1, above=True)
        require_number("trainer.penalty", self.penalty, 0, above=True)
        require_flag("trainer.tune", self.tune)
        require_text("trainer.device", self.device, "auto, and devices of torch: cpu, cuda, cuda:1, mps")
        object.__setattr__(self, "precision", settle_precision("trainer", self.precision, self._device()))

    def base(self) -> Mapping[str, Any]:
        """Name and digest of the encoder; ConfigError if it does not exist."""
        return {"model": Path(self.model).name, "digest": model_digest(self._folder())}

    def train(self, data: TrainingData, held_out: TrainingData, folder: Path, tools: TrainingTools) -> Trained:
        """Fills `folder / MODEL`; DataError if a question has examples of one class only."""
        import torch

        if self.threads is not None:
            torch.set_num_threads(self.threads)
        torch.manual_seed(tools.seed)
        learnt, unseen = (
            self._examples(side, data, tools.seed) for side, data in (("training", data), ("validation", held_out))
        )
        encoder, tokenizer = load_encoder(self._folder(), self._device(), f"trainer.model={self.model}")
        network = self._untrained(encoder, tokenizer)
        values = self._fit(network, learnt, unseen, tools)
        values |= _calibrated(network, unseen)
        network.save(folder / MODEL)
        counts = {f"{side}_examples": len(of) for side, of in (("training", learnt), ("validation", unseen))}
        tables = pd.concat(
            [table_of(learnt).assign(side="training"), table_of(unseen).assign(side="validation")],
            ignore_index=True,
        )
        return Trained({"examples": tables}, {**counts, **values}, _facts(network, values, tables))

    def _folder(self) -> Path:
        carried = model_path(self.model)
        if carried is not None:
            return carried
        path = Path(self.model).expanduser()
        if not path.is_dir():
            remedy = "Give the path of an encoder's folder, or trainer.model=all-MiniLM-L6-v2"
            path = hub_folder("trainer.model", self.model, "sentence-transformers", _FILES, remedy)
        if not (path / "config.json").is_file() or not any(path.glob("*.safetensors")):
            raise ConfigError(
                f"trainer.model={self.model}: config.json and *.safetensors are needed in the folder; other "
                "weights are not loaded, since that may execute code"
            )
        return path.resolve()

    def _device(self) -> str:
        import torch

        if self.device != "auto":
            return self.device
        return "cuda" if torch.cuda.is_available() else "cpu"

    def _untrained(self, encoder: Any, tokenizer: Any) -> JudgeNetwork:
        positions = int(getattr(encoder.config, "max_position_embeddings", self.max_length))
        if self.max_length > positions:
            raise ConfigError(
                f"trainer.max_length={self.max_length}: allowed are 8 to {positions}, the tokens that "
                f"{self.model} takes"
            )
        reads = PAIRS if self.tune else TEXTS
        n = len(self.questions)
        weight = np.zeros((n, n_features(reads, encoder.config.hidden_size)))
        return JudgeNetwork(
            encoder, tokenizer, reads, self.max_length, tuple(self.questions), weight, np.zeros(n), np.ones(n)
        )

    def _examples(self, side: str, data: TrainingData, seed: int) -> list[Example]:
        found = examples(data, self.questions, seed, self.per_topic, self.strong)
        n_topics = data.topics["qid"].nunique()
        for question in self.questions:
            labels = [one.label for one in found if one.judged == question]
            yes = sum(labels)
            if min(yes, len(labels) - yes) < _LEAST:
                raise DataError(
                    f"trainer: {side}, {n_topics} topics: {question} has {yes} right and {len(labels) - yes} "
                    f"wrong examples, and takes {_LEAST} of each; topics need evidence and an answer "
                    "(trainer.questions leaves a question out)"
                )
        return found

    def _fit(
        self, network: JudgeNetwork, learnt: list[Example], unseen: list[Example], tools: TrainingTools
    ) -> dict[str, float]:
        if not self.tune:
            _fit_heads(network, learnt, self.penalty)
            values = _measures(network, unseen)
            tools.report(1, {f"validation_{name}": value for name, value in values.items()})
            return {}
        looked = Tuning(self.epochs, self.batch_size, self.lr, self.precision, self.looks)

        def look() -> dict[str, float]:
            return {f"validation_{name}": value for name, value in _measures(network, unseen).items()}

        return tune(network, learnt, look, looked, tools)


def _fit_heads(network: JudgeNetwork, learnt: Sequence[Example], penalty: float) -> None:
    """Fits a logistic regression for each question.

    Features are in standard units; those of the encoder are scaled down so that all together vary as the few
    interactions do, which they would else drown.
    """
    from sklearn.linear_model import LogisticRegression

    for row, question in enumerate(network.questions):
        own = [one for one in learnt if one.judged == question]
        features = network.features(question, [one.triple for one in own])
        middle, scale = features.mean(axis=0), np.maximum(features.std(axis=0), 1e-6)
        n_read = features.shape[1] - len(INTERACTIONS)
        scale[:n_read] *= np.sqrt(n_read / len(INTERACTIONS))
        model = LogisticRegression(C=penalty, max_iter=2000)
        model.fit((features - middle) / scale, [one.label for one in own])
        network.weight[row] = model.coef_[0] / scale
        network.bias[row] = float(model.intercept_[0] - network.weight[row] @ middle)


def _measures(network: JudgeNetwork, unseen: Sequence[Example]) -> dict[str, float]:
    """accuracy, AUC and log loss of every question, and `loss`, the mean log loss."""
    found: dict[str, float] = {}
    for question in network.questions:
        label, p = _judged(network, question, unseen)
        found |= {f"{question}_{name}": value for name, value in measures_of(label, p).items()}
    losses = [found[f"{question}_log_loss"] for question in network.questions]
    return {"loss": float(np.mean(losses)), **found}


def measures_of(label: np.ndarray, p: np.ndarray) -> dict[str, float]:
    """accuracy (of P > 0.5), auc and log_loss of probabilities against labels 0 and 1."""
    from sklearn.metrics import roc_auc_score

    clipped = np.clip(p, 1e-7, 1 - 1e-7)
    return {
        "accuracy": float(((p > 0.5) == (label == 1)).mean()),
        "auc": float(roc_auc_score(label, p)) if 0 < label.mean() < 1 else float("nan"),
        "log_loss": float(-np.mean(label * np.log(clipped) + (1 - label) * np.log(1 - clipped))),
    }


def _judged(network: JudgeNetwork, question: str, found: Sequence[Example]) -> tuple[np.ndarray, np.ndarray]:
    own = [one for one in found if one.judged == question]
    label = np.array([one.label for one in own], dtype=float)
    return label, network.probabilities(question, [one.triple for one in own])


def _calibrated(network: JudgeNetwork, unseen: Sequence[Example]) -> dict[str, float]:
    """Sets the temperatures that minimise the log loss on held-out examples; returns metrics of these.

    `_log_loss_calibrated` is of temperatures fitted on the other half of the topics.
    """
    from scipy.special import expit, logit

    found: dict[str, float] = {}
    for row, question in enumerate(network.questions):
        own = [one for one in unseen if one.judged == question]
        label, p = _judged(network, question, unseen)
        logits = logit(np.clip(p, 1e-12, 1 - 1e-12))
        half = np.array([hash_half(one.qid) for one in own])
        apart = np.empty(len(own))
        for side in (False, True):
            others = half != side
            at = temperature(logits[others], label[others]) if others.any() else 1.0
            apart[half == side] = expit(logits[half == side] / at)
        values = measures_of(label, p)
        values["log_loss_calibrated"] = measures_of(label, apart)["log_loss"]
        network.temperatures[row] = temperature(logits, label)
        values["temperature"] = float(network.temperatures[row])
        found |= {f"validation_{question}_{name}": value for name, value in values.items() if value == value}
    return found


def temperature(logits: np.ndarray, label: np.ndarray) -> float:
    """The temperature, from 0.1 to 20, with the lowest log loss."""
    from scipy.optimize import minimize_scalar
    from scipy.special import log_expit

    signed = np.where(label == 1, logits, -logits)
    low, high = np.log(_TEMPERATURES)
    found = minimize_scalar(
        lambda log_t: -float(log_expit(signed / np.exp(log_t)).mean()), bounds=(low, high), method="bounded"
    )
    return float(np.exp(found.x))


def hash_half(qid: str) -> bool:
    """The half of the topics to which a topic belongs, equal on every machine."""
    import zlib

    return bool(zlib.crc32(qid.encode("utf-8", "surrogatepass")) & 1)


def _facts(network: JudgeNetwork, values: Mapping[str, float], table: pd.DataFrame) -> dict[str, str]:
    """Lines for the model card."""
    found = {
        question: (
            f"accuracy {values[f'validation_{question}_accuracy']:.3f}, AUC "
            f"{values.get(f'validation_{question}_auc', float('nan')):.3f} on held-out examples, temperature "
            f"{values[f'validation_{question}_temperature']:.2f}"
        )
        for question in network.questions
    }
    kinds = table[table["side"] == "training"]["kind"].value_counts()
    found["examples"] = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
    reads = {PAIRS: "the encoder reads both texts together", TEXTS: "the encoder is the base's, as it was"}
    found["network"] = reads[network.reads]
    return found
