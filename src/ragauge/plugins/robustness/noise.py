"""`retriever=noise`: evidence mixed with distractors, and the drawing of distractors for both retrievers here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from ragauge.contract.checks import require_choice, require_count, require_number
from ragauge.contract.component import Tools
from ragauge.contract.option import CONF, option
from ragauge.contract.retrieval import Retriever, SeesEvidence
from ragauge.retrieval.retrievers.arms import Arms, built
from ragauge.retrieval.retrievers.evidence import by_topic, evidence_chunks, letters
from ragauge.retrieval.retrievers.ranking import run_frame

SPARE = 20  # hits of another retriever beyond those that are needed, since some hold evidence
_OWN_LETTERS = 32  # of a text that stands in another whole by more than chance


@option("retriever/noise")
class Noise(Arms, SeesEvidence):
    """Evidence mixed with distractors: varies how much of the retrieved text is wrong, and the evidence's place.

    noise_rate: the expected share of distractors, in [0, 1]. A topic keeps (1 - noise_rate) * n_passages chunks of
        evidence, rounded up or down by a coin of its own, but no more than it has. Distractors take the other places.
        The evidence kept at one rate is kept at every lower one.
    n_passages: how many chunks a topic gets; None is as many as hold its evidence.
    distractors: `random` chunks of documents that the evidence does not name, or the `hard` ones that
        from_retriever (one of `options`) ranks highest, random ones where these do not suffice. None holds
        a part of the evidence, or a letter of it in the evidence's own document.
    order: where the evidence stands: `first`, `last`, in the `middle` of the distractors, or `shuffled`.
    seed: for coins, random chunks and shuffling. Each topic has its own, so that it is the same in any selection.

    `score` is 1 / (rank + 1).
    """

    component = "noise"

    noise_rate: float = CONF
    n_passages: int | None = CONF
    distractors: Literal["random", "hard"] = CONF
    from_retriever: str | None = CONF
    order: Literal["shuffled", "first", "last", "middle"] = CONF
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_number("retriever.noise_rate", self.noise_rate, 0, 1)
        require_count("retriever.n_passages", self.n_passages, null="as many as hold the topic's evidence")
        require_choice("retriever.distractors", self.distractors, ("random", "hard"))
        require_choice("retriever.order", self.order, ("shuffled", "first", "last", "middle"))
        require_count("retriever.seed", self.seed, 0)
        arm: dict[str, Retriever] = {}
        name = None
        if self.distractors == "hard":
            name = str(self.from_retriever)
            arm = {name: built("retriever.from_retriever", name, self.options, None)}
        object.__setattr__(self, "from_retriever", name)  # what is not asked is no part of the identity
        object.__setattr__(self, "options", arm)

    @property
    def top_k(self) -> int:
        """The largest number of chunks per topic; 0 if it varies by topic."""
        return self.n_passages or 0

    @property
    def retrievers(self) -> Mapping[str, Retriever]:
        """The retriever that supplies hard distractors."""
        return self.options

    def rank_with_evidence(
        self, topics: pd.DataFrame, evidence: pd.DataFrame, chunks: pd.DataFrame, folder: Path, tools: Tools
    ) -> pd.DataFrame:
        """Frame `run` of the topics [qid, query]."""
        topic, chunk = by_topic(topics, evidence_chunks(evidence, chunks))
        ends = np.searchsorted(topic, np.arange(len(topics) + 1))
        named = evidence[evidence["docno"].notna()].groupby("qid")["docno"].agg(set).to_dict()
        texts = evidence[evidence["text"].notna()].groupby("qid")["text"].agg(list).to_dict()
        most = max(self.n_passages or 0, int(np.diff(ends).max(initial=0)))
        other = ("retriever.from_retriever", self.from_retriever, self.options)
        hard = ranked_by_other(*other, topics, chunks, most + SPARE, folder, tools)
        parent, text = (chunks[c].to_numpy(dtype=object) for c in ("parent", "text"))
        found: list[list[int]] = []
        for row, qid in enumerate(topics["qid"]):
            own = chunk[ends[row] : ends[row + 1]].tolist()
            rng = np.random.default_rng(number_of(self.seed, qid))
            coin, of_evidence = rng.random(), [own[i] for i in rng.permutation(len(own))]
            n = len(own) if self.n_passages is None else self.n_passages
            # Rounded, since (1 - 0.8) * 5 is a little less than 1.
            kept = min(int(np.floor(round((1 - self.noise_rate) * n, 9) + coin)), n, len(own))
            parts = [part for part in map(letters, texts.get(qid, ())) if part]
            documents = named.get(qid, set())

            def usable(
                candidate: int, near: bool, own: list[int] = own, parts: list[str] = parts,
                documents: set[str] = documents,
            ) -> bool:  # fmt: skip
                other = candidate not in own and (near or parent[candidate] not in documents)
                return other and not holds_any(text[candidate], parts)

            distractors = [c for c in hard[row] if usable(c, near=True)][:n]
            drawn = in_random_order(len(chunks), rng)
            while len(distractors) < n and (candidate := next(drawn, None)) is not None:
                if candidate not in distractors and usable(candidate, near=False):
                    distractors.append(candidate)
            found.append(self._arranged(of_evidence[:kept], distractors[: n - kept], qid, chunks))
        topic = np.repeat(np.arange(len(topics)), [len(of_topic) for of_topic in found])
        return run_frame(topics, chunks, topic, np.array([c for cs in found for c in cs], dtype=np.int64))

    def _arranged(self, of_evidence: list[int], others: list[int], qid: str, chunks: pd.DataFrame) -> list[int]:
        """The chunks of a topic in context order."""
        half = len(others) // 2
        if self.order == "first":
            return of_evidence + others
        if self.order == "last":
            return others + of_evidence
        if self.order == "middle":
            return others[:half] + of_evidence + others[half:]
        # By a number of its own, a chunk stands before or behind another one at every rate alike.
        docno = chunks["docno"].iloc
        return sorted(of_evidence + others, key=lambda chunk: number_of(self.seed, qid, docno[chunk]))


def ranked_by_other(
    key: str,
    name: str | None,
    options: Mapping[str, Any],
    topics: pd.DataFrame,
    chunks: pd.DataFrame,
    depth: int,
    folder: Path,
    tools: Tools,
) -> list[list[int]]:
    """The chunks (positions) that the retriever `name` ranks highest for every topic, to a depth; [] without options.

    key, options: as `built` takes them. folder: holds its index in a folder of its name.
    """
    if not options:
        return [[] for _ in range(len(topics))]
    arm = built(key, str(name), options, depth)
    run = arm.transformer(chunks, folder / str(name), tools)(topics[["qid", "query"]])
    chunk: pd.Series = pd.Series(pd.Index(chunks["docno"]).get_indexer(pd.Index(run["docno"])))
    of_topic: dict[Any, Any] = chunk.groupby(run["qid"].to_numpy(), sort=False).agg(list).to_dict()
    return [of_topic.get(qid, []) for qid in topics["qid"]]


def holds_any(text: str, parts: list[str]) -> bool:
    """Whether a text contains one of the parts whole, or lies within one; all without white space.

    A text of less than 32 letters stands in others by chance.
    """
    own = letters(text)
    return any(part in own or (len(own) >= _OWN_LETTERS and own in part) for part in parts)


def number_of(seed: int, *names: str) -> int:
    """A 64-bit number determined by seed and names alone."""
    text = "\x1f".join((str(seed), *names))
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def in_random_order(n: int, rng: np.random.Generator) -> Iterator[int]:
    """0 to n - 1 in random order, each once; for large n draws only as many as are consumed."""
    seen: set[int] = set()
    while n and len(seen) <= n // 2:
        for number in rng.integers(n, size=64).tolist():
            if number not in seen:
                seen.add(number)
                yield number
    rest = np.setdiff1d(np.arange(n), list(seen))
    yield from rng.permutation(rest).tolist()
