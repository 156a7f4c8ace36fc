"""The stages of one job in order, each got from the store or made once.

Knows neither Hydra nor MLflow: parts in, frames out.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge.contract import frames
from ragauge.contract.errors import ConfigError, DataError, MissingError
from ragauge.contract.identity import code_of, identity
from ragauge.contract.protocols import (
    ChatModel,
    Chunker,
    Embedder,
    Generator,
    Judge,
    Measure,
    Retriever,
    Source,
    Tokenizer,
    Tools,
)
from ragauge.estimate import choose_topics
from ragauge.measures import classics, mean_over_parts, part_scores, qrels_of
from ragauge.measures.rankings import CLASSICS
from ragauge.retrieval.contexts import build_contexts, contexts_at
from ragauge.store import Entry, Key, Store, file_sha256

# Statuses of rows that are missing on purpose: no LLM or judge was chosen, or there was nothing to judge.
_SETTLED = ("none", "no answer")


@dataclass(frozen=True)
class Parts:
    """The chosen part of every config group."""

    dataset: Source
    chunker: Chunker
    embedder: Embedder
    tokenizer: Tokenizer
    retriever: Retriever
    measure: Measure
    llm: Generator
    judge: Judge


@dataclass(frozen=True)
class Sample:
    """How many topics are judged and how they are chosen: `uniform`, or `neyman` by predicted P(5)."""

    n: int
    design: str = "uniform"
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.n, int) or isinstance(self.n, bool) or self.n < 2:
            raise ConfigError(f"judge.sample={self.n}: allowed are integers of at least 2, null for all")
        if self.design not in ("uniform", "neyman"):
            raise ConfigError(f"judge.sample_design={self.design}: allowed are uniform, neyman")


class _Incomplete(Exception):
    """Carries a frame with missing rows past the store, which keeps whole outputs only."""

    def __init__(self, frame: pd.DataFrame) -> None:
        super().__init__("rows are missing")
        self.frame = frame


@dataclass
class Pipeline:
    """One job: its parts, its budget, and the stages, each computed on first use.

    n_grid: budgets in tokens at which the score is laid out; n_tokens is added to it.
    sample: which topics are judged; None is all of them.
    Attributes hold frames (see ragauge.contract.frames); `seconds` the time of each stage in this process,
    `made` the names of the stages that were not in the store.
    """

    parts: Parts
    store: Store
    n_tokens: int
    n_grid: tuple[int, ...]
    max_missing_share: float = 1.0
    sample: Sample | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)

    @cached_property
    def tools(self) -> Tools:
        """The shared models that parts may use."""
        chat = self.parts.llm if self.parts.llm.kind == "chat" else None
        assert chat is None or isinstance(chat, ChatModel)
        return Tools(self.store, self.parts.embedder, self.parts.tokenizer, chat)

    @cached_property
    def grid(self) -> list[int]:
        """All budgets, ascending, in tokens."""
        return sorted({*self.n_grid, self.n_tokens})

    # --- the stages -------------------------------------------------------------------------------

    @cached_property
    def dataset(self) -> Entry:
        """docs, topics, evidence; and skipped: the rows that were dropped, with the reason."""
        source = self.parts.dataset
        key = Key(
            "dataset",
            getattr(source, "version", 1),
            {"source": identity(source)},
            {role: file_digest(path) for role, path in source.files().items()},
        )

        def load() -> Mapping[str, pd.DataFrame]:
            data = source.load()
            if data.topics.empty:
                raise ConfigError(f"dataset {source.name}: no topic is left to evaluate")
            skipped = pd.DataFrame({"skipped": list(data.skipped)}, dtype="str")
            return {"docs": data.docs, "topics": data.topics, "evidence": data.evidence, "skipped": skipped}

        return self._stage("dataset", lambda: self.store.get_frames(key, load))

    @cached_property
    def chunks(self) -> Entry:
        """chunks of all documents."""
        chunker = self.parts.chunker
        key = Key(
            "chunks",
            1,
            {"chunker": identity(chunker), **self._models(chunker.uses)},
            {"docs": self.dataset.frame_digest("docs")},
        )
        return self._stage(
            "chunks",
            lambda: self.store.get_frames(
                key, lambda: {"chunks": chunker.chunk(self.dataset.frame("docs"), self.tools)}
            ),
        )

    @cached_property
    def index(self) -> Entry:
        """The retriever's index folder."""
        retriever = self.parts.retriever
        embeds = {"embedder"} & retriever.uses
        key = Key(
            "index",
            1,
            {"index": {**retriever.index_identity(), **code_of(retriever)}, **self._models(embeds)},
            {"chunks": self.chunks.frame_digest("chunks")},
        )

        def build(folder: Path) -> None:
            retriever.build_index(self.chunks.frame("chunks"), folder, self.tools)

        return self._stage("index", lambda: self.store.get(key, build))

    @cached_property
    def run(self) -> Entry:
        """run: the ranked chunks of every topic."""
        retriever = self.parts.retriever
        key = Key(
            "run",
            1,
            {"retriever": identity(retriever), **self._models(retriever.uses)},
            {"index": self.index.digest, "topics": self._queries_digest},
        )

        def retrieve() -> Mapping[str, pd.DataFrame]:
            transformer = retriever.transformer(self.chunks.frame("chunks"), self.index.path, self.tools)
            run = transformer(self.dataset.frame("topics")[["qid", "query"]])
            # Topics whose queries an LLM failed to write were searched by the question alone.
            if "queries" in run and {"llm", "question"} <= set(run["queries"]):
                raise _Incomplete(run)
            return {"run": run}

        def get() -> Entry:
            try:
                return self.store.get_frames(key, retrieve)
            except _Incomplete as incomplete:
                # Under a key of its own, so that a rerun asks again.
                alone = replace(key, params={**key.params, "incomplete": uuid.uuid4().hex})
                run = incomplete.frame
                return self.store.get_frames(alone, lambda: {"run": run})

        return self._stage("run", get)

    @cached_property
    def context(self) -> Entry:
        """layouts, prefixes: C and the ends of every C_N of the grid."""
        reorder = self.parts.retriever.reorder_after_cut
        tokenizer = self.parts.tokenizer
        key = Key(
            "context",
            1,
            {"tokenizer": identity(tokenizer), "n_grid": self.grid, "reorder_after_cut": reorder},
            {"run": self.run.frame_digest("run"), "chunks": self.chunks.frame_digest("chunks")},
        )

        def lay_out() -> Mapping[str, pd.DataFrame]:
            layouts, prefixes = build_contexts(
                self.run.frame("run"),
                self.chunks.frame("chunks"),
                tokenizer,
                self.grid,
                self.dataset.frame("topics")["qid"].tolist(),
                reorder_after_cut=reorder,
            )
            return {"layouts": layouts, "prefixes": prefixes}

        return self._stage("context", lambda: self.store.get_frames(key, lay_out))

    @cached_property
    def scores(self) -> Entry:
        """scores of the whole grid, and part_scores: one row per evidence part."""
        measure = self.parts.measure
        key = Key(
            "scores",
            1,
            {"measure": identity(measure)},
            {
                "layouts": self.context.frame_digest("layouts"),
                "prefixes": self.context.frame_digest("prefixes"),
                "evidence": self.dataset.frame_digest("evidence"),
            },
        )

        def score() -> Mapping[str, pd.DataFrame]:
            parts = part_scores(
                measure,
                self.dataset.frame("evidence"),
                self.context.frame("layouts"),
                self.context.frame("prefixes"),
            )
            return {"scores": mean_over_parts(parts, measure.name), "part_scores": parts}

        return self._stage("scores", lambda: self.store.get_frames(key, score))

    @cached_property
    def classics(self) -> Entry:
        """classics: measures of the run over whole documents, as IR knows them ([metric, value])."""
        key = Key(
            "classics",
            1,
            {"measures": list(CLASSICS)},
            {"run": self.run.frame_digest("run"), "evidence": self.dataset.frame_digest("evidence")},
        )

        def measure() -> Mapping[str, pd.DataFrame]:
            qrels = qrels_of(self.dataset.frame("evidence"))
            values = classics(self.run.frame("run"), qrels, list(CLASSICS)) if len(qrels) else {}
            rows = [(CLASSICS[name], value) for name, value in values.items()]
            return {"classics": pd.DataFrame(rows, columns=["metric", "value"])}

        return self._stage("classics", lambda: self.store.get_frames(key, measure))

    @cached_property
    def contexts(self) -> pd.DataFrame:
        """C_N of every topic at this job's n_tokens (frame `contexts`)."""
        return contexts_at(self.context.frame("layouts"), self.context.frame("prefixes"), self.n_tokens)

    @cached_property
    def answers(self) -> pd.DataFrame:
        """answers at this job's n_tokens; stored when none is missing."""
        llm = self.parts.llm
        key = Key(
            "answers",
            1,
            {"llm": identity(llm), "n_tokens": self.n_tokens, **self._models(llm.uses)},
            {
                "topics": self._queries_digest,
                "layouts": self.context.frame_digest("layouts"),
                "prefixes": self.context.frame_digest("prefixes"),
            },
        )
        frame = self._replies(
            "answers",
            key,
            lambda: llm.answer(self.dataset.frame("topics"), self.contexts, self.tools),
            self.contexts["qid"],
        )
        if llm.kind != "none":
            self._check_missing("answers", frame["answer"])
        return frame

    @property
    def sampled_by_prediction(self) -> bool:
        """Whether the topics to judge are chosen by a predictor, from what all jobs of a sweep retrieved."""
        return self.sample is not None and self.sample.design == "neyman"

    @cached_property
    def sampled(self) -> pd.DataFrame | None:
        """Which topics are judged: [qid, stratum, judged]; None where all are. Uniform unless set."""
        if self.sample is None:
            return None
        qids = self.dataset.frame("topics")["qid"]
        even = pd.Series(0.5, index=qids)
        return choose_topics(even, self.sample.n, seed=self.sample.seed, design="uniform")

    def set_sampled(self, frame: pd.DataFrame) -> None:
        """Takes a choice of topics that was made elsewhere, such as for all jobs of a sweep."""
        self.__dict__["sampled"] = frame

    def to_judge(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows of the topics that are judged."""
        if self.sampled is None:
            return frame
        return frame[frame["qid"].isin(self.sampled.loc[self.sampled["judged"], "qid"])]

    @cached_property
    def verdicts(self) -> pd.DataFrame:
        """verdicts on this job's answers, those to judge; stored when none is missing."""
        judge = self.parts.judge
        answers = self.to_judge(self.answers)
        key = Key(
            "verdicts",
            1,
            {"judge": identity(judge), **self._models(judge.uses)},
            {
                "topics": self.dataset.frame_digest("topics"),
                "evidence": self.dataset.frame_digest("evidence"),
                "answers": frames.content_digest(answers[["qid", "n_tokens", "answer", "status"]]),
            },
        )
        frame = self._replies(
            "verdicts",
            key,
            lambda: judge.judge(
                self.dataset.frame("topics"), self.dataset.frame("evidence"), answers, self.tools
            ),
            answers["qid"],
        )
        self._check_verdicts(frame)
        return frame

    def set_verdicts(self, frame: pd.DataFrame) -> None:
        """Takes verdicts that were made elsewhere, together with those of other jobs."""
        self._check_verdicts(frames.check("verdicts", frame, "a judge"))
        self.__dict__["verdicts"] = frame

    def _check_verdicts(self, frame: pd.DataFrame) -> None:
        if self.parts.judge.kind != "none" and self.parts.llm.kind != "none":
            self._check_missing("verdicts", frame["label"])

    @cached_property
    def retrieved(self) -> pd.DataFrame:
        """One row per topic at this n_tokens, before any LLM: query, answer_reference, ir_score, features."""
        scores = self.scores.frame("scores")
        at_n = scores[scores["n_tokens"] == self.n_tokens]
        rows = self.dataset.frame("topics").merge(
            at_n[["qid", "n_tokens", "value"]].rename(columns={"value": "ir_score"}),
            on="qid",
            validate="one_to_one",
        )
        rows = rows.rename(columns={"answer": "answer_reference"})
        return rows.merge(self.features, on="qid", validate="one_to_one")

    @cached_property
    def outcomes(self) -> pd.DataFrame:
        """`retrieved` with answer, label and statuses; where topics are sampled, stratum and judged, too."""
        answers = self.answers.rename(columns={"status": "answer_status", "error": "answer_error"})
        rows = self.retrieved.merge(
            answers[["qid", "answer", "answer_status", "answer_error"]], on="qid", validate="one_to_one"
        )
        keep = [c for c in ("qid", "label", "status", "raw", "reason") if c in self.verdicts]
        rows = rows.merge(
            self.verdicts[keep].rename(columns={"status": "judge_status", "raw": "judge_raw"}),
            on="qid",
            how="left",
            validate="one_to_one",
        )
        if self.sampled is None:
            return rows
        rows["judge_status"] = rows["judge_status"].fillna("not sampled")
        return rows.merge(self.sampled, on="qid", validate="one_to_one")

    @cached_property
    def features(self) -> pd.DataFrame:
        """What is known of every topic before any LLM is asked, beside its IR score (keyed by qid).

        evidence_best, evidence_worst: the highest and lowest score of the topic's evidence parts, in [0, 1].
        answer_in_context: 1 where the reference answer stands in the context (case folded), else 0.
        n_used: tokens of the context. score_gap: the retriever's first score less its second, 0 without one.
        """
        parts = self.scores.frame("part_scores")
        of_topic = parts[parts["n_tokens"] == self.n_tokens].groupby("qid")["value"]
        rows = self.dataset.frame("topics")[["qid", "answer"]].merge(
            self.contexts[["qid", "text", "n_used"]], on="qid", validate="one_to_one"
        )
        pairs = zip(rows["answer"].str.casefold(), rows["text"].str.casefold(), strict=True)
        top = self.run.frame("run").query("rank < 2").pivot(index="qid", columns="rank", values="score")
        top = top.reindex(columns=[0, 1])
        return pd.DataFrame(
            {
                "qid": rows["qid"],
                "evidence_best": rows["qid"].map(of_topic.max()),
                "evidence_worst": rows["qid"].map(of_topic.min()),
                "answer_in_context": [float(answer in text) for answer, text in pairs],
                "n_used": rows["n_used"].astype(float),
                "score_gap": rows["qid"].map(top[0] - top[1]).fillna(0.0),
            }
        )

    # --- how a stage is got -----------------------------------------------------------------------

    def _stage(self, name: str, get: Callable[[], Entry]) -> Entry:
        with self._timed(name):
            entry = get()
        if entry.made:
            self.made.append(name)
        return entry

    def _replies(
        self, name: str, key: Key, make: Callable[[], pd.DataFrame], qids: pd.Series
    ) -> pd.DataFrame:
        """Answers or verdicts of the qids: from the store (then marked as cached, at no cost) or made now."""
        value = "answer" if name == "answers" else "label"

        def checked() -> Mapping[str, pd.DataFrame]:
            frame = frames.check(name, make())
            lost = set(qids) ^ set(frame["qid"])
            if lost:
                raise DataError(
                    f"{name} frame: {len(lost)} topic(s) missing or unknown, such as {min(lost)!r}"
                )
            # Nobody was asked for the others; what failed is asked for again in the next run.
            if (~frame["status"].isin(_SETTLED) & frame[value].isna()).any():
                raise _Incomplete(frame)
            return {name: frame}

        with self._timed(name):
            try:
                entry = self.store.get_frames(key, checked)
            except _Incomplete as incomplete:
                self.made.append(name)
                return incomplete.frame
            frame = entry.frame(name)
        if entry.made:
            self.made.append(name)
            return frame
        return frame.assign(cached=True, cost_usd=0.0, seconds=0.0)

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        """Adds the time of the block to the stage, less what other stages took inside it."""
        before, start = sum(self.seconds.values()), time.perf_counter()
        try:
            yield
        finally:
            inner = sum(self.seconds.values()) - before
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start - inner

    def _check_missing(self, what: str, values: pd.Series) -> None:
        missing = int(values.isna().sum())
        if missing > self.max_missing_share * len(values):
            raise MissingError(
                f"{missing} of {len(values)} {what} are missing, more than max_missing_share="
                f"{self.max_missing_share:g} allows; what was paid for is kept, "
                "and a rerun asks only for the rest"
            )

    def _models(self, uses: frozenset[str] | set[str]) -> dict[str, Any]:
        """The identities of the shared models that a part uses."""
        shared = {"embedder": self.tools.embedder, "tokenizer": self.tools.tokenizer, "chat": self.tools.chat}
        unknown = set(uses) - set(shared)
        if unknown:
            raise TypeError(f"a part uses {sorted(unknown)}; shared models are {sorted(shared)}")
        return {
            name: identity(model) if model is not None else None
            for name, model in shared.items()
            if name in uses
        }

    @cached_property
    def _queries_digest(self) -> str:
        return frames.content_digest(self.dataset.frame("topics")[["qid", "query"]])


def file_digest(path: Path) -> str:
    """SHA-256 (hex) of a file's bytes; read once per process while the file stays as it is."""
    stat = path.stat()
    return _file_digest(path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=64)
def _file_digest(path: Path, size: int, mtime_ns: int) -> str:
    return file_sha256(path)
