"""Five documents, four of two passages, seven questions, two retrievers by table, an evaluator that errs on order."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from ragauge.contract.component import Tools
from ragauge.contract.retrieval import Retriever

# Every passage has eight words and marks; A%p0 and B%p0 are the same, and E%p0 is but for a space.
PASSAGES = {
    "A%p0": "The bridge of Aldor crosses the Aare.", "A%p1": "The mill of Aldor grinds at night.",
    "B%p0": "The bridge of Aldor crosses the Aare.", "B%p1": "A fair is held here every May.",
    "C%p0": "The tower of Belmar is of stone.", "C%p1": "It was built by Ines in 1711.",
    "D%p0": "Nobody in Cresta has seen the river.", "D%p1": "Fish is sold there on every Monday.",
    "E%p0": "The bridge of Aldor  crosses the Aare.",
}  # fmt: skip
DOCS = {docno: f"{PASSAGES[f'{docno}%p0']}\n {PASSAGES[f'{docno}%p1']}" for docno in "ABCD"}
DOCS["E"] = PASSAGES["E%p0"]
TOPICS: dict[str, dict[str, Any]] = {
    "t1": {"query": "Which river is below the bridge of Aldor?", "answers": ["Aare", "the Aare"], "kind": "river"},
    "t2": {"query": "Who built the tower?", "answer": "Ines", "kind": "person"},
    "t3": {"query": "When is the fair?", "kind": "time", "length": 2.5},
    "t4": {"query": "What is sold?", "answers": ["Fish"], "wrong_answers": ["Salt"]},
    "t5": {"query": "How long is the bridge?", "unanswerable": True},
    "t6": {"query": "Who has seen the river?",
           "evidence": [{"docno": "D", "text": PASSAGES["D%p0"], "relevance": 2}, {"docno": "A", "relevance": 1}]},
    "t7": {"query": "Why?"},
}  # fmt: skip
# What each retriever finds, the best first: the fifth passage is beyond the depth of 4.
RANKED = {
    "first": {"t1": "A%p0 C%p1 E%p0 B%p0", "t2": "D%p1 C%p1 C%p0 B%p1", "t3": "B%p1 D%p0 A%p1", "t4": "A%p1 B%p1 D%p1",
              "t5": "A%p0", "t6": "D%p0"},
    "second": {"t1": "A%p1 B%p0 A%p0 D%p0 C%p0", "t2": "C%p0 D%p1 C%p1 B%p1 A%p0", "t3": "D%p0 D%p1 C%p1 B%p1",
               "t4": "B%p0 A%p0 D%p1"},
}  # fmt: skip
# The grade of a passage by its topic, and what is quoted; all others have 0. t1's mill is misquoted, t3's fair has a
# reply that nobody can read, and the request about its mill fails.
SAID: dict[tuple[str, str], tuple[int, list[str]]] = {
    ("t1", "A%p0"): (3, [PASSAGES["A%p0"]]), ("t1", "A%p1"): (2, ["The mill of Aldor grinds at noon."]),
    ("t1", "C%p1"): (1, [PASSAGES["C%p1"]]), ("t1", "E%p0"): (2, [PASSAGES["A%p0"]]),
    ("t1", "C%p0"): (3, [PASSAGES["C%p0"]]),
    ("t2", "C%p0"): (3, [PASSAGES["C%p0"]]), ("t2", "C%p1"): (2, ["built by Ines in", PASSAGES["C%p1"]]),
    ("t2", "B%p1"): (1, []), ("t3", "D%p0"): (1, []), ("t3", "D%p1"): (1, []), ("t3", "C%p1"): (2, []),
    ("t4", "D%p1"): (2, [PASSAGES["D%p1"]]),
}  # fmt: skip


@dataclass(frozen=True)
class Told(Retriever):
    """A retriever by table."""

    uses: ClassVar[frozenset[str]] = frozenset()
    reorder_after_cut: ClassVar[bool] = False

    name: str
    top_k: int = 30

    def index_identity(self) -> Mapping[str, Any]:
        return {"class": "none"}

    def build_index(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> None:
        """There is none."""

    def transformer(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Callable[..., pd.DataFrame]:
        rows = [
            (qid, docno, -rank, rank)
            for qid, found in RANKED[self.name].items()
            for rank, docno in enumerate(found.split())
        ]
        run = pd.DataFrame(rows, columns=["qid", "docno", "score", "rank"]).astype({"score": float})
        return lambda topics: run[run["qid"].isin(topics["qid"])].reset_index(drop=True)


def write(folder: Path) -> None:
    """corpus.jsonl, questions.jsonl, and in `conf` the retrievers by table and `long`, which is bm25."""
    (folder / "conf" / "retriever").mkdir(parents=True)
    for name in RANKED:
        text = f"_target_: {__name__}.Told\nname: {name}\ntop_k: 30\n"
        (folder / "conf" / "retriever" / f"{name}.yaml").write_text(text, "utf-8")
    (folder / "conf" / "retriever" / "long.yaml").write_text("defaults:\n  - bm25\n  - _self_\nb: 1.0\n", "utf-8")
    docs = [{"docno": docno, "title": "", "text": text} for docno, text in DOCS.items()]
    topics = [{"qid": qid, **of} for qid, of in TOPICS.items()]
    for name, rows in (("corpus", docs), ("questions", topics)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")


def asked_about(prompt: str) -> tuple[str, str]:
    """The qid and the first passage with the text that a prompt shows."""
    [query, text] = map(json.loads, re.findall(r"<quoted-material[-\w]*>\n(.*?)\n</quoted-material", prompt, re.S))
    [qid] = [qid for qid, of in TOPICS.items() if of["query"] == query]
    return qid, next((docno for docno, shown in PASSAGES.items() if shown == text), text)


def fails(prompt: str) -> bool:
    return asked_about(prompt) == ("t3", "A%p1")


def reply(prompt: str) -> str:
    if asked_about(prompt) == ("t3", "B%p1"):
        return "The fair is in May."
    grade, quotes = SAID.get(asked_about(prompt), (0, []))
    return f"```json\n{json.dumps({'grade': grade, 'quotes': quotes})}\n```"
