"""Overlap measures of 50,000 answers, against their libraries called answer by answer.

Answers of a sentence, made of 20,000 words by Zipf's law, each with a reference of its own that shares about
half of them. The libraries are asked about fewer answers, and values are compared on those. Seconds are the
processor's own: everything here runs on one core.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from timing import print_header, print_row

from ragauge.measures.answers import Contains, ExactMatch, RougeL, RougeN, TokenF1
from ragauge.plugins.overlap.bleu import Bleu
from ragauge.plugins.overlap.chrf import ChrF

N_ANSWERS = 50_000
ASKED = 1_000  # answers that the libraries are asked about
WORDS = 20


def texts() -> tuple[list[str], list[str]]:
    """Answers and references of 5 to 35 words."""
    rng = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlucmfwypvbg"))
    vocabulary = np.array(["".join(rng.choice(letters, n)) for n in rng.integers(2, 10, 20_000)])

    def one(words: np.ndarray) -> str:
        return f"{' '.join(words).capitalize()}."

    answers, references = [], []
    for size in rng.integers(WORDS - 15, WORDS + 16, N_ANSWERS):
        words = vocabulary[np.minimum(rng.zipf(1.3, 2 * size), len(vocabulary)) - 1]
        kept = words[:size].copy()
        changed = rng.random(size) < 0.5
        kept[changed] = words[size:][changed]
        answers.append(one(words[:size]))
        references.append(one(kept))
    return answers, references


def libraries() -> dict[str, tuple[str, Callable[[str, str], float]]]:
    """{column: (library, its value of an answer and a reference)}; without what is not installed."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    found: dict[str, tuple[str, Callable[[str, str], float]]] = {}
    for n in (1, 2, 4):
        bleu = BLEU(effective_order=True, max_ngram_order=n)
        found[f"bleu_{n}"] = (
            "sacrebleu",
            lambda answer, one, bleu=bleu: bleu.sentence_score(answer, [one]).score / 100,  # type: ignore[misc]
        )
    chrf = CHRF()
    found["chrf"] = ("sacrebleu", lambda answer, one: chrf.sentence_score(answer, [one]).score / 100)
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError:
        return found
    for name, theirs in (("rouge_1", "rouge1"), ("rouge_2", "rouge2"), ("rouge_l", "rougeL")):
        scorer = RougeScorer([theirs])
        found[name] = (
            "rouge-score",
            lambda answer, one, scorer=scorer, theirs=theirs: scorer.score(one, answer)[theirs].fmeasure,  # type: ignore[misc]
        )
    return found


def main() -> None:
    """Prints the table."""
    answers, references = texts()
    qids = [str(i) for i in range(N_ANSWERS)]
    topics = pd.DataFrame({"qid": qids, "answer": references})
    given = pd.DataFrame({"qid": qids, "n_tokens": 1000, "answer": pd.array(answers, "str")})
    none: Any = None
    measures = (ExactMatch(), TokenF1(), Contains(), Bleu(), RougeN(n=1), RougeN(n=2), RougeL(), ChrF())
    for measure in measures:  # imports
        measure.measure(topics.head(10), none, none, given.head(10), none)
    theirs, total = libraries(), 0.0
    print_header(f"{N_ANSWERS:,} answers", "ours", "library, one by one", "ratio", "values differ by at most")
    for measure in measures:
        start = time.process_time()
        found = measure.measure(topics, none, none, given, none)
        seconds = time.process_time() - start
        total += seconds
        columns = {name: rows["value"].to_numpy() for name, rows in found.groupby("measure", sort=False)}
        known = [name for name in columns if name in theirs]
        if not known:
            print_row(", ".join(columns), f"{seconds:.2f} s", "", "", "")
            continue
        start = time.process_time()
        values = {
            name: [theirs[name][1](a, r) for a, r in zip(answers[:ASKED], references[:ASKED], strict=True)]
            for name in known
        }
        each = (time.process_time() - start) / ASKED
        off = max(np.abs(columns[name][:ASKED] - values[name]).max() for name in known)
        print_row(
            ", ".join(columns),
            f"{seconds:.2f} s",
            f"{theirs[known[0]][0]}: {each * N_ANSWERS:.0f} s (from {ASKED:,} answers)",
            f"{each * N_ANSWERS / seconds:.0f}x",
            f"{off:.0e}",
        )
    print_row("all of them", f"{total:.1f} s", "", "", "")


if __name__ == "__main__":
    main()
