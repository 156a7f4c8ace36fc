"""The score kernels and the token offsets against what one would use instead, on questions of HotpotQA.

Prints a row of a Markdown table per comparison: what, ours, theirs, the ratio, and whether the results agree.
Times are medians of interleaved runs in one process, on one thread unless the row says otherwise.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Iterator
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from rapidfuzz.distance import LCSseq
from timing import against

from ragauge.measures import Subsequence, Substring, Words
from ragauge.retrieval.contexts import build_contexts
from ragauge.texts.tokenizers import HuggingFaceTokenizer

DATA = Path(__file__).resolve().parents[1] / "../shared/data"
GRID = range(100, 1100, 100)
RUNS = 5
GOAL_GRID, GOAL_THREADS = 3, 1.7  # seconds of the study's grid on two threads, and against one
# The published study: questions, retrievers.
STUDY = 7404, 5

Topic = tuple[list[str], str, np.ndarray]  # evidence, context, ends


def fold(text: str) -> str:
    return " ".join(text.split())


def reference(evidence: str, context: str) -> float:
    """The published way: every substring of the evidence, longest first, is looked for in the context."""
    for length in range(len(evidence), 0, -1):
        for start in range(len(evidence) - length + 1):
            if evidence[start : start + length] in context:
                return length / len(evidence)
    return 0.0


def difflib_ratio(evidence: str, context: str) -> float:
    return SequenceMatcher(None, context, evidence, autojunk=False).find_longest_match().size / len(evidence)


def rapidfuzz_ratio(evidence: str, context: str) -> float:
    return LCSseq.similarity(evidence, context) / len(evidence)


def per_budget(ratio: Callable[[str, str], float], topics: Iterable[Topic]) -> list[np.ndarray]:
    """What one writes without a kernel: every evidence text against every prefix."""
    return [
        np.array([[ratio(fold(text), fold(context[:end])) for end in ends] for text in evidence])
        for evidence, context, ends in topics
    ]


def together(measure: Any, topics: list[Topic]) -> list[np.ndarray]:
    found: list[np.ndarray] = measure.score_all(*map(list, zip(*topics, strict=True)))
    return found


def compare(
    what: str,
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    items: int,
    item: str,
    repeat: int = 1,
    goal: float | None = None,
) -> str:
    """A row: medians of interleaved runs, per item; `ours` does the items `repeat` times in one call."""
    seconds: tuple[list[float], list[float]] = [], []
    for _ in range(RUNS):
        for work, taken in zip((ours, theirs), seconds, strict=True):
            start = time.perf_counter()
            work()
            taken.append(time.perf_counter() - start)
    a, b = median(seconds[0]) / repeat / items, median(seconds[1]) / items
    same = all(np.array_equal(x, y) for x, y in zip(ours(), theirs(), strict=repeat == 1))
    agreement = "equal" if same else "DIFFERENT"
    return row(
        what,
        f"{show(a)} a {item}",
        f"{show(b)} a {item}",
        f"{b / a:,.0f}" + ("" if goal is None else against(goal, b / a)),
        agreement,
    )


def show(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def hotpot_topics(tokenizer: HuggingFaceTokenizer) -> tuple[list[Topic], list[Topic]]:
    """Every question's evidence with its own paragraphs, and with those of another question."""
    questions = json.loads((DATA / "hotpot_train_100.json").read_text(encoding="utf-8"))
    evidence, contexts = [], []
    for question in questions:
        paragraphs = dict(question["context"])
        facts = [(title, i) for title, i in question["supporting_facts"] if i < len(paragraphs[title])]
        evidence.append([paragraphs[title][i] for title, i in facts])
        contexts.append(" ".join("".join(sentences) for sentences in paragraphs.values()))
    while min(map(len, contexts)) < 6000:  # a few questions have less than 1,000 tokens of paragraphs
        contexts = [text if len(text) >= 6000 else f"{text} {text}" for text in contexts]
    ends = [np.array([offsets[min(n, len(offsets)) - 1, 1] for n in GRID]) for offsets in tokenizer.offsets(contexts)]
    found = [(text[: at[-1]], at) for text, at in zip(contexts, ends, strict=True)]
    own = [(facts, *context) for facts, context in zip(evidence, found, strict=True)]
    other = [(facts, *context) for facts, context in zip(evidence, found[1:] + found[:1], strict=True)]
    return own, other


def long_topics() -> list[Topic]:
    """Evidence of four passages of 2,000 characters, one of them in the context of 30,000."""
    texts = pd.read_csv(DATA / "rag_mini_texts.csv")["text"].dropna().tolist()
    rng = random.Random(0)
    evidence = [" ".join(rng.sample(texts, 12))[:2000] for _ in range(4)]
    around = " ".join(rng.sample(texts, 200))[:28_000]
    context = around[:14_000] + evidence[0] + around[14_000:]
    return [(evidence, context, np.linspace(0, len(context), 11).astype(int)[1:])]


def rows() -> Iterator[str]:
    tokenizer = HuggingFaceTokenizer("all-MiniLM-L6-v2")
    own, other = hotpot_topics(tokenizer)
    some_own, some_other = own[::10], other[::10]
    substring, subsequence = Substring(threads=1), Subsequence(threads=1)
    together(substring, own[:1])  # compiles, or reads what was compiled
    together(subsequence, own[:1])

    for name, topics in (("in the context", some_own), ("of another question", some_other)):
        for label, ratio, goal in (
            ("the published algorithm", reference, 2000),
            ("difflib", difflib_ratio, 1000),
        ):
            yield compare(
                f"substring, evidence {name}, 10 budgets: {label}",
                partial(together, substring, topics * 400),
                partial(per_budget, ratio, topics),
                pairs(topics), "pair", repeat=400, goal=goal,
            )  # fmt: skip
    both = some_own + some_other
    yield compare(
        "subsequence, 10 budgets: rapidfuzz LCSseq",
        partial(together, subsequence, both * 25),
        partial(per_budget, rapidfuzz_ratio, both),
        pairs(both), "pair", repeat=25,
    )  # fmt: skip
    if (DATA / "rag_mini_texts.csv").exists():
        long = long_topics()
        yield compare(
            "substring, 4 passages of 2,000 characters in 30,000, 10 budgets: difflib",
            partial(together, substring, long * 20),
            partial(per_budget, difflib_ratio, long),
            pairs(long), "pair", repeat=20,
        )  # fmt: skip
    yield from grid_rows(own, other)
    if (DATA / "wiki_passages_6119.json").exists():
        yield offsets_row(tokenizer)


def pairs(topics: list[Topic]) -> int:
    """How many evidence texts the topics have."""
    return sum(len(evidence) for evidence, _, _ in topics)


def grid_rows(own: list[Topic], other: list[Topic]) -> Iterator[str]:
    """The study's whole grid, evidence in half of the contexts; one thread against two."""
    questions, retrievers = STUDY
    half = len(own)
    grid = [(own if i // half % 2 else other)[i % half] for i in range(questions * retrievers)]
    for measure in (Substring, Subsequence, Words):
        seconds: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(RUNS if measure is Substring else 1):
            for threads in seconds:
                start = time.perf_counter()
                found = together(measure(threads), grid)
                seconds[threads].append(time.perf_counter() - start)
        one, two = median(seconds[1]), median(seconds[2])
        mean = float(np.mean([of_topic.mean() for of_topic in found]))
        of_two, of_ratio = "", ""
        if measure is Substring:
            of_two, of_ratio = against(GOAL_GRID, two, at_most=True), against(GOAL_THREADS, one / two)
        yield row(
            f"{measure.name}, {questions:,} questions x {retrievers} retrievers x 10 budgets "
            f"({pairs(grid):,} pairs): 2 threads against 1",
            show(two) + of_two, show(one), f"{one / two:.2f}{of_ratio}", f"mean {mean:.4f}",
        )  # fmt: skip


def offsets_row(tokenizer: HuggingFaceTokenizer) -> str:
    """Prefix ends of a run from its distinct chunks, against tokenising every joined context."""
    passages = json.loads((DATA / "wiki_passages_6119.json").read_text(encoding="utf-8"))[:1000]
    texts = [passage["text"] for passage in passages]
    chunks = pd.DataFrame({"docno": [f"d{i}%p0" for i in range(len(texts))], "text": texts})
    rng = np.random.default_rng(0)
    qids = [f"q{i}" for i in range(500)]
    hits = [rng.choice(len(texts), 15, replace=False) for _ in qids]
    run = pd.DataFrame(
        {
            "qid": np.repeat(qids, 15),
            "docno": chunks["docno"].to_numpy()[np.concatenate(hits)],
            "rank": np.tile(np.arange(15), len(qids)),
        }
    )

    def stitched() -> list[np.ndarray]:
        prefixes = build_contexts(run, chunks, tokenizer, GRID, qids)[1]
        return list(prefixes["end"].to_numpy().reshape(len(qids), -1))

    def joined() -> list[np.ndarray]:
        contexts = [" ".join(texts[i] for i in of_topic) for of_topic in hits]
        return [
            np.array([offsets[n - 1, 1] if n <= len(offsets) else len(text) for n in GRID])
            for text, offsets in zip(contexts, tokenizer.offsets(contexts), strict=True)
        ]

    what = "prefix ends, 500 topics x 15 of 1,000 passages: tokenising the joined text"
    return compare(what, stitched, joined, len(qids), "topic")


def main() -> None:
    if not (DATA / "hotpot_train_100.json").exists():
        print(f"skipped: {DATA / 'hotpot_train_100.json'} is not there")
        return
    print(row("what", "ours", "theirs", "ratio", "agreement"))
    print("|---|---|---|---|---|")
    for line in rows():
        print(line, flush=True)


if __name__ == "__main__":
    main()
