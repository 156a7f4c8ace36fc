"""A small RAG system: the passages of a JSON Lines file that share most words with a question, and a quotation.

DOCS names the file (docno, text). The words that fewer passages have count more. COUNT, if set, names a file that
gets a line for every question.
"""

import json
import math
import os
import re
from collections import Counter
from pathlib import Path

from fastapi import FastAPI
from pydantic import BaseModel

DOCS = [json.loads(line) for line in Path(os.environ["DOCS"]).read_text(encoding="utf-8").splitlines()]
COUNT = os.environ.get("COUNT")
app = FastAPI()


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


PASSAGES = [words(doc["text"]) for doc in DOCS]
RARE = {word: math.log(len(DOCS) / n) for word, n in Counter(w for p in PASSAGES for w in p).items()}


class Question(BaseModel):
    question: str
    passages: int = 5


@app.get("/health")
def health() -> dict[str, int]:
    return {"passages": len(DOCS)}


@app.post("/ask")
def ask(asked: Question) -> dict[str, object]:
    if COUNT:
        with open(COUNT, "a", encoding="utf-8") as file:
            file.write(asked.question + "\n")
    wanted = words(asked.question)
    scores = [sum(RARE[word] for word in wanted & passage) for passage in PASSAGES]
    best = sorted(range(len(DOCS)), key=lambda i: -scores[i])[: asked.passages]
    sentences = [s for i in best for s in re.split(r"(?<=[.!?])\s+", DOCS[i]["text"])]
    answer = max(sentences, key=lambda s: sum(RARE.get(word, 0.0) for word in wanted & words(s)))
    found = [{"id": DOCS[i]["docno"], "text": DOCS[i]["text"], "score": scores[i]} for i in best]
    return {
        "answer": answer,
        "contexts": found,
        "usage": {"input": len(wanted), "output": len(answer.split())},
    }
