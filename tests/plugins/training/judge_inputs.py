"""A collection small enough to be read, of which judges can learn."""

from __future__ import annotations

import pandas as pd

from ragauge.plugins.training.contract import TrainingData


def collection(n: int = 12, first: int = 0) -> TrainingData:
    """n topics, each with a document of two chunks: the first holds the answer, the second does not."""
    numbers = range(first, first + n)
    names = {i: f"{'BCDFGHJKLMNPRSTVWZ'[i % 18]}{'aeiou'[i % 5]}r{'lmnt'[i % 4]}o{i}" for i in numbers}
    topics = pd.DataFrame(
        {
            "qid": [f"q{i}" for i in numbers],
            "query": [
                f"How many people live in {names[i]}?" if i % 2 else f"Who is mayor of {names[i]}?" for i in numbers
            ],
            "answer": [f"{1000 + 37 * i}" if i % 2 else f"Ann B{names[i].lower()}" for i in numbers],
        }
    ).astype("str")
    sentences = [
        f"In {names[i]} live {answer} people." if i % 2 else f"The mayor of {names[i]} is {answer}."
        for i, answer in zip(numbers, topics["answer"], strict=True)
    ]
    chunks = []
    for i, sentence in zip(numbers, sentences, strict=True):
        text = f"{names[i]} is a town. {sentence}"
        other = "Rain falls on the hills. Nobody counts the sheep."
        chunks += [(f"d{i}#0", text, f"d{i}", 0, len(text))]
        chunks += [(f"d{i}#1", other, f"d{i}", len(text) + 1, len(text) + 1 + len(other))]
    frame = pd.DataFrame(chunks, columns=["docno", "text", "parent", "start", "end"])
    evidence = pd.DataFrame({"qid": topics["qid"], "part": 0, "docno": [f"d{i}" for i in numbers], "text": sentences})
    hits = [(f"q{i}", f"d{j}#0", 1.0 / (1 + r), r + 1) for i in numbers for r, j in enumerate(list(numbers)[:5])]
    run = pd.DataFrame(hits, columns=["qid", "docno", "score", "rank"])
    strings = {"docno": "str", "text": "str", "parent": "str"}
    return TrainingData(
        topics,
        evidence.astype({"qid": "str", "docno": "str", "text": "str"}),
        frame.astype(strings),
        run.astype({"qid": "str", "docno": "str"}),
    )
