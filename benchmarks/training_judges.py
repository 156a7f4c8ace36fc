"""Trained judges (ARES) on fictional worlds that they were not trained on, as Markdown tables.

    python benchmarks/training_judges.py                  # both kinds of judge, 3 seeds
    python benchmarks/training_judges.py --small          # a few minutes on a busy machine
    python benchmarks/training_judges.py --tune false     # heads alone on an untouched encoder
    python benchmarks/training_judges.py --probes         # the product's probes of judges alone

Trained on worlds of some seeds and some types of question; tried on worlds of other seeds, all types, fewer
pronouns, look-alike names, and questions and answers in other words (`reworded`). Accuracy by kind of
example; then nine mock systems, 70 to 90 % right, 2.5 points apart, of the tried world's triples: Kendall's
tau of their order and coverage of 95 % intervals by PPI++, by the labels alone, and the judge alone. On the 30 answers
of known class by which the product tries judges, right is what is faithful to the evidence and relevant, at half.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE.parent / "tests")]

from plugins.training.ares_simulation import SHARES, trial  # noqa: E402
from ragauge.answering.judges import LexicalJudge  # noqa: E402
from ragauge.answering.judges.probes import Probes  # noqa: E402
from ragauge.contract.topics import QUESTIONS  # noqa: E402
from ragauge.estimate.agreement import kappa_estimate  # noqa: E402
from ragauge.estimate.intervals import LEVEL  # noqa: E402
from ragauge.plugins.fictional.source import FictionalWorld  # noqa: E402
from ragauge.plugins.training.ares.network import load_judge  # noqa: E402
from ragauge.plugins.training.contract import MODEL, TrainingData, TrainingTools  # noqa: E402
from ragauge.plugins.training.trainers.judge import JudgeTrainer, measures_of  # noqa: E402
from ragauge.plugins.training.trainers.triples import Example, Triple, examples  # noqa: E402
from ragauge.texts.sentences import sentence_spans  # noqa: E402

_SENTENCES = 4  # of a chunk
HARD: dict[str, Any] = {"style": "hard", "pronouns": 0.0, "max_hops": 4, "types": ()}
_SEEN = ("chain", "comparison", "negation", "false_premise")


def world(seed: int, documents: int, questions: int, **knobs: Any) -> TrainingData:
    """A world in chunks of four sentences, with the hits of TF-IDF."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    found = FictionalWorld(documents=documents, seed=seed, questions=questions, **{**HARD, **knobs}).load()
    assert isinstance(found.docs, pd.DataFrame)
    rows = []
    for docno, text in zip(found.docs["docno"], found.docs["text"], strict=True):
        spans = list(sentence_spans(text))
        for first in range(0, len(spans), _SENTENCES):
            start, end = spans[first][0], spans[min(first + _SENTENCES, len(spans)) - 1][1]
            rows.append((f"{docno}#{first}", text[start:end], docno, start, end))
    chunks = pd.DataFrame(rows, columns=["docno", "text", "parent", "start", "end"])
    chunks = chunks.astype({"docno": "str", "text": "str", "parent": "str"})
    vectors = TfidfVectorizer()
    scores = (vectors.fit_transform(chunks["text"]) @ vectors.transform(found.topics["query"]).T).toarray().T
    best = np.argsort(-scores, axis=1)[:, :10]
    hits = [
        (qid, chunks["docno"].iloc[j], float(scores[i, j]), rank)
        for i, qid in enumerate(found.topics["qid"])
        for rank, j in enumerate(best[i], start=1)
    ]
    run = pd.DataFrame(hits, columns=["qid", "docno", "score", "rank"])
    return TrainingData(found.topics, found.evidence, chunks, run)


def reworded(found: Sequence[Example], seed: int) -> list[Example]:
    """The examples with questions and short answers in frames that no training has."""
    rng = np.random.default_rng(seed)
    asking = ("Tell me, please: {}", "I would like to know: {}", "{} I cannot find it.", "Could you say, {}")
    saying = ("It is {}.", "According to the article, {}.", "The answer: {}", "That would be {}, I believe.")
    told = []
    for one in found:
        question = asking[int(rng.integers(4))].format(one.triple.question)
        answer = one.triple.answer
        if answer and len(answer.split()) <= 6:
            answer = saying[int(rng.integers(4))].format(answer)
        told.append(one._replace(triple=one.triple._replace(question=question, answer=answer)))
    return told


def systems(label: np.ndarray, p: np.ndarray, n_labels: int, trials: int, seed: int) -> np.ndarray:
    """Means over trials of `simulations.ares.trial`; mock systems are drawn from right and wrong triples."""
    rng = np.random.default_rng(seed)
    right, wrong = p[label == 1], p[label == 0]
    n = 1000
    rows = []
    for _ in range(trials):
        truths = [(rng.random(n) < share).astype(float) for share in SHARES]
        seen = [np.where(t == 1, rng.choice(right, n), rng.choice(wrong, n)) for t in truths]
        rows.append(trial(truths, seen, n_labels, rng))
    return np.asarray(np.mean(rows, axis=0))


def on_probes(judge: Any) -> str:
    """Right answers told from the others, and Cohen's kappa, on the product's probes."""
    probes = Probes(LexicalJudge(support=0.5, cover=0.75))
    context = probes.evidence.groupby("qid")["text"].agg(" ".join)
    rows = probes.answers.merge(probes.topics[["qid", "query"]], on="qid").to_dict("records")
    triples = [Triple(row["query"], context[row["qid"]], row["answer"]) for row in rows]
    asked = ("answer_faithfulness", "answer_relevance")
    said = np.all([judge.probabilities(question, triples) >= 0.5 for question in asked], axis=0)
    known = np.array([row["label"] == 5 for row in rows])
    qids = pd.Series([row["qid"] for row in rows])
    found = kappa_estimate(*(np.where(right, 5, 1) for right in (known, said)), qids, LEVEL)
    right, others = (said[known].sum(), known.sum()), ((~said[~known]).sum(), (~known).sum())
    return "| {} of {} | {} of {} | {:.2f} ({:.2f} to {:.2f}) |".format(
        *right, *others, found.value, found.lo, found.hi
    )


def main() -> None:
    """Trains, tries, and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="small worlds, one seed, few trials")
    parser.add_argument("--tune", choices=("true", "false", "both"), default="both")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of the trainings")
    parser.add_argument("--max-seconds", type=float, default=1000)
    parser.add_argument("--probes", action="store_true", help="the table of the probes alone")
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    arguments = parser.parse_args()
    seeds = [0] if arguments.small else arguments.seeds
    documents, questions, trials = (300, 25, 10) if arguments.small else (2000, 200, 100)
    learnt = world(11, documents, questions, types=_SEEN)
    held_out = world(12, max(200, documents // 4), questions // 3, types=_SEEN)
    tried = world(13, max(200, documents // 2), questions // 2, pronouns=0.5, look_alikes=2)
    if arguments.probes:
        print("| judge | seed | right recognised | others recognised | kappa |\n|---|---|---|---|---|")
    else:
        print("| judge | seed | words | question | kind | n | accuracy | AUC |\n|---|---|---|---|---|---|---|---|")
    ordered = []
    for tune in (True, False):
        if arguments.tune not in ("both", str(tune).lower()):
            continue
        for seed in seeds:
            trainer = JudgeTrainer(arguments.model, tune=tune)
            name = "tuned" if tune else "heads alone"
            with tempfile.TemporaryDirectory() as scratch:
                start, folder = time.perf_counter(), Path(scratch)
                nothing: Any = None
                limit = arguments.max_seconds
                tools = TrainingTools(nothing, folder, seed, limit, lambda step, values: None)
                trainer.train(learnt, held_out, folder, tools)
                seconds = time.perf_counter() - start
                judge = load_judge(folder / MODEL, "cpu", "model")
                if arguments.probes:
                    print(f"| {name}, {seconds:.0f} s | {seed} {on_probes(judge)}", flush=True)
                    load_judge.cache_clear()
                    continue
                plain = examples(tried, QUESTIONS, seed)
                for words, found in (("as trained", plain), ("reworded", reworded(plain, seed))):
                    for question in QUESTIONS:
                        own = [one for one in found if one.judged == question]
                        label = np.array([one.label for one in own], dtype=float)
                        p = judge.probabilities(question, [one.triple for one in own])
                        kinds = np.array([one.kind for one in own])
                        for kind in ("all", *dict.fromkeys(kinds)):
                            rows = np.ones(len(own), bool) if kind == "all" else kinds == kind
                            of = measures_of(label[rows], p[rows])
                            print(
                                f"| {name}, {seconds:.0f} s | {seed} | {words} | {question} | {kind} "
                                f"| {rows.sum()} | "
                                f"{of['accuracy']:.3f} | {of['auc']:.3f} |",
                                flush=True,
                            )
                        if words == "reworded":
                            ordered += [
                                (name, seed, question, n, systems(label, p, n, trials, seed)) for n in (150, 300)
                            ]
                load_judge.cache_clear()
    if arguments.probes:
        return
    print(
        "\n| judge | seed | question | labels | tau PPI++ | labels alone | judge alone | coverage PPI++ | "
        "labels alone | judge alone | one system's labels | width |\n" + "|---" * 12 + "|"
    )
    for name, seed, question, n, of in ordered:
        print(f"| {name} | {seed} | {question} | {n} | " + " | ".join(f"{value:.3f}" for value in of) + " |")


if __name__ == "__main__":
    main()
