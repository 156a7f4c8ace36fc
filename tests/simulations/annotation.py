"""Simulation of made evidence: a generated world with its gold hidden, a reader that errs, systems ranked by both.

The reader sees what `ragauge annotate` pools. It misses a share `errs` of the passages that hold gold evidence. Of the
others it takes some for answers, and quotes a sentence. Where errors are `per` passage, these are a share `errs` of
them; where they are per answer, so many that they are a share `errs` of all passages that it takes for answers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from hydra import compose, initialize_config_dir
from scipy.stats import kendalltau

from processes import ROOT
from ragauge.experiment.setup import config
from ragauge.experiment.stages.components import instantiate_components
from ragauge.experiment.stages.pipeline import Pipeline
from ragauge.measures import Substring, score_frame
from ragauge.plugins.annotate.corrected import corrected_mean
from ragauge.plugins.annotate.depth import missed
from ragauge.plugins.annotate.grading import Graded, Part, parts_of
from ragauge.plugins.annotate.pool import PooledPassage, pooled
from ragauge.retrieval.contexts import build_contexts
from ragauge.retrieval.order import RankOrder
from ragauge.store import Store
from ragauge.texts.quotes import find_sentence
from ragauge.texts.sentences import sentence_spans

RETRIEVERS = ("bm25", "sim", "mmr", "mlq", "hybrid")
LACKING = (0.0, 0.25, 0.5)  # share of a retriever's hits that a variant lacks: its own, and two weaker ones
BUDGETS = tuple(range(100, 1100, 100))
DEPTH = 10
_DRAWS = 500


@dataclass(frozen=True)
class World:
    """A world's gold evidence, the five rankings, and the contexts of every system: (layouts, prefixes)."""

    gold: pd.DataFrame
    runs: Mapping[str, pd.DataFrame]
    chunks: pd.DataFrame
    contexts: Mapping[str, tuple[pd.DataFrame, pd.DataFrame]]

    @property
    def qids(self) -> list[str]:
        return list(dict.fromkeys(self.gold["qid"]))

    def scores(self, evidence: pd.DataFrame) -> np.ndarray:
        """float [topics, systems, budgets]: IR scores, NaN for topics without evidence."""
        qids, known = self.qids, set(evidence["qid"])
        found = np.full((len(qids), len(self.contexts), len(BUDGETS)), np.nan)
        for number, (layouts, prefixes) in enumerate(self.contexts.values()):
            own = prefixes[prefixes["qid"].isin(known)].reset_index(drop=True)
            table = score_frame(Substring(), evidence, layouts, own).pivot(
                index="qid", columns="n_tokens", values="value"
            )
            found[:, number] = table.reindex(index=qids, columns=list(BUDGETS)).to_numpy()
        return found


@cache
def world(documents: int = 150, questions: int = 25, seed: int = 1, retrievers: tuple[str, ...] = RETRIEVERS) -> World:
    """The default world, or one with more documents and questions; its topics with gold evidence alone.

    retrievers: options of the group, each with overrides behind a blank, such as "bm25 retriever.b=1".
    """
    runs, contexts = {}, {}
    config.register()
    with tempfile.TemporaryDirectory() as folder:
        for name in retrievers:
            with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
                given = ["dataset=fictional", f"dataset.documents={documents}", f"dataset.questions={questions}"]
                cfg = compose("config", overrides=[*given, f"dataset.seed={seed}", *f"retriever={name}".split()])
            pipeline = Pipeline(instantiate_components(cfg), Store(Path(folder)), BUDGETS[-1], BUDGETS)
            runs[name] = pipeline.frame("run")
        gold, chunks = pipeline.frame("scored_evidence"), pipeline.frame("chunks")
        qids = list(dict.fromkeys(gold["qid"]))
        rng = np.random.default_rng(seed)
        for name, run in runs.items():
            run = run[run["qid"].isin(qids)]
            for lacking in LACKING:
                kept = run[rng.random(len(run)) >= lacking]
                kept = kept.assign(rank=kept.groupby("qid")["rank"].rank().astype("int64") - 1)
                of = build_contexts(kept, chunks, pipeline.tools.tokenizer, list(BUDGETS), qids, RankOrder())
                contexts[f"{name} -{lacking:g}"] = of
    return World(gold, runs, chunks, contexts)


def read(of: World, errs: float, seed: int, per: str = "passage", depth: int = DEPTH) -> dict[str, list[Part]]:
    """{qid: the evidence parts} that the reader makes of the pool."""
    rng = np.random.default_rng(seed)
    gold = of.gold.groupby("qid")["text"].agg(list)
    pools = pooled(of.runs, of.chunks, of.qids, depth)
    held = {
        qid: [[span for text in gold[qid] if (span := find_sentence(text, one.text))] for one in pool]
        for qid, pool in pools.items()
    }
    holding = [bool(spans) for of_topic in held.values() for spans in of_topic]
    odds = np.mean(holding) / (1 - np.mean(holding))
    false = errs if per == "passage" else errs * odds
    found = {}
    for qid, pool in pools.items():
        graded = [
            _graded(one, tuple(spans), rng.random() < (errs if spans else false), rng)
            for one, spans in zip(pool, held[qid], strict=True)
        ]
        found[qid] = parts_of(graded)
    return found


def _graded(
    passage: PooledPassage, spans: tuple[tuple[int, int], ...], wrong: bool, rng: np.random.Generator
) -> Graded:
    if wrong and spans:
        spans = ()
    elif wrong:
        sentences = [s for s in sentence_spans(passage.text) if find_sentence(passage.text[slice(*s)], passage.text)]
        spans = (sentences[rng.integers(len(sentences))],) if sentences else ()
    return Graded(passage, 3 if spans else 0, spans, (), "ok", "")


def made(of: World, errs: float, seed: int, per: str = "passage") -> pd.DataFrame:
    """Frame `evidence` of what the reader makes."""
    parts = [(qid, i, part.text) for qid, parts in read(of, errs, seed, per).items() for i, part in enumerate(parts)]
    frame = pd.DataFrame(parts, columns=["qid", "part", "text"])
    return frame.astype({"qid": "str", "part": "int64", "text": "str"})


def rankings(
    of: World, errs: float, seed: int, per: str = "passage", labelled: int = 25, n_boot: int = _DRAWS
) -> dict[str, float]:
    """Kendall's tau-b of the systems' mean scores from gold and from made evidence, within each budget.

    tau: mean over the budgets; lo, hi: percentile bootstrap over topics; least: the lowest of a budget. corrected: the
    mean tau of gold's and the corrected means, where people label so many topics. ties: share of the pairs of systems,
    over all budgets, that gold or made means do not tell apart. mean_gold, mean_made: scores.
    """
    gold, by_reader = of.scores(of.gold), of.scores(made(of, errs, seed, per))
    rng = np.random.default_rng(seed)
    n = len(gold)
    each = _taus(np.nanmean(gold, 0), np.nanmean(by_reader, 0))
    drawn = [
        np.mean(_taus(np.nanmean(gold[at], 0), np.nanmean(by_reader[at], 0)))
        for at in rng.integers(n, size=(n_boot, n))
    ]
    lo, hi = np.quantile(drawn, [0.025, 0.975])
    apart = [np.abs(x[:, None] - x[None]) for x in (np.nanmean(gold, 0), np.nanmean(by_reader, 0))]
    upper = np.triu_indices(gold.shape[1], 1)
    tied = np.mean([(one[upper] < 1e-9).mean() for one in apart])
    found = {"tau": np.mean(each), "lo": lo, "hi": hi, "least": min(each), "ties": tied}
    known = rng.permutation(n) < labelled
    corrected = [
        [
            corrected_mean(np.where(known, gold[:, i, k], np.nan), by_reader[:, i, k], known).mean.value
            for k in range(len(BUDGETS))
        ]
        for i in range(gold.shape[1])
    ]
    found["corrected"] = np.mean(_taus(gold.mean(axis=0), np.array(corrected)))
    found |= {"mean_gold": np.nanmean(gold), "mean_made": np.nanmean(by_reader)}
    return {name: float(value) for name, value in found.items()}


def _taus(gold: np.ndarray, by_reader: np.ndarray) -> list[float]:
    rounded = [np.round(x, 12) for x in (gold, by_reader)]
    return [float(kendalltau(rounded[0][:, k], rounded[1][:, k]).statistic) for k in range(gold.shape[1])]


def coverage(
    of: World, errs: float, topics: int, labelled: int, trials: int, seed: int, per: str = "passage", budget: int = 300
) -> dict[str, float]:
    """How often 95 % intervals of corrected means, and of the first two systems' difference, hold the world's own.

    A trial draws `topics` of the world's with replacement, and people label `labelled` of these by gold evidence. The
    systems are the retrievers as they are. bias, width: of the means, the width by that of people's scores alone;
    made_bias: of the uncorrected means.
    """
    column, own = BUDGETS.index(budget), slice(None, None, len(LACKING))
    gold, by_reader = (x[:, own, column] for x in (of.scores(of.gold), of.scores(made(of, errs, seed, per))))
    truth, rng = gold.mean(axis=0), np.random.default_rng(seed)
    holds, apart, bias, width = [], [], [], []
    for _ in range(trials):
        at = rng.integers(len(gold), size=topics)
        known = rng.permutation(topics) < labelled
        people, machine = np.where(known[:, None], gold[at], np.nan), by_reader[at]
        for system, true in enumerate(truth):
            found = corrected_mean(people[:, system], machine[:, system], known).mean
            holds.append(found.lo <= true <= found.hi)
            bias.append(found.value - true)
        alone = corrected_mean(people[:, -1], np.zeros(topics), known).mean
        width.append((found.hi - found.lo) / (alone.hi - alone.lo))
        other = corrected_mean(people[:, 1] - people[:, 0], machine[:, 1] - machine[:, 0], known).mean
        apart.append(other.lo <= truth[1] - truth[0] <= other.hi)
    made_bias = (np.nanmean(by_reader, axis=0) - truth).mean()
    means = {"coverage": np.mean(holds), "difference": np.mean(apart), "bias": np.mean(bias), "width": np.mean(width)}
    return {name: float(value) for name, value in (means | {"made_bias": made_bias}).items()}


def deeper(of: World, depth: int, topics: int, trials: int, seed: int) -> dict[str, float]:
    """How the estimate of what ranks depth + 1 to 2 depth bring holds their number, for topics drawn from the world.

    The reader does not err. truth, estimate: means; coverage: of the 95 % interval for the topics drawn.
    """
    ranks = [[part.rank for part in parts] for parts in read(of, 0.0, seed, depth=2 * depth).values()]
    rng = np.random.default_rng(seed)
    truths, values, holds = [], [], []
    for trial in range(trials):
        drawn = [ranks[i] for i in rng.integers(len(ranks), size=topics)]
        found = missed([[rank for rank in of_topic if rank <= depth] for of_topic in drawn], depth, trial)
        assert found is not None
        truth = sum(rank > depth for of_topic in drawn for rank in of_topic)
        truths.append(truth)
        values.append(found.value)
        holds.append(found.lo <= truth <= found.hi)
    return {"truth": float(np.mean(truths)), "estimate": float(np.mean(values)), "coverage": float(np.mean(holds))}
