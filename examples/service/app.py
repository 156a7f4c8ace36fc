"""A small RAG system: the passages that share the rarest words with a question, and the sentence that does.

DOCS names a JSON Lines file (docno, text); COUNT, if set, a file that gets a line for every question.
"""

import json
import math
import os
import re
from collections import Counter
from pathlib import Path

from fastapi import Body, FastAPI


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


DOCS = [json.loads(line) for line in Path(os.environ["DOCS"]).read_text(encoding="utf-8").splitlines()]
WORDS = [words(doc["text"]) for doc in DOCS]
RARE = {word: math.log(len(DOCS) / n) for word, n in Counter(w for each in WORDS for w in each).items()}
app = FastAPI()


@app.post("/ask")
def ask(question: str = Body(), passages: int = Body(5)) -> dict[str, object]:
    if count := os.environ.get("COUNT"):
        with open(count, "a", encoding="utf-8") as file:
            file.write(question + "\n")
    asked = words(question)
    scores = [sum(RARE[word] for word in asked & each) for each in WORDS]
    best = sorted(range(len(DOCS)), key=lambda i: -scores[i])[:passages]
    sentences = [s for i in best for s in re.split(r"(?<=[.!?])\s+", DOCS[i]["text"])]
    answer = max(sentences, key=lambda s: sum(RARE.get(word, 0.0) for word in asked & words(s)))
    found = [{"id": DOCS[i]["docno"], "text": DOCS[i]["text"], "score": scores[i]} for i in best]
    usage = {"input": len(asked), "output": len(words(answer))}
    return {"answer": answer, "contexts": found, "usage": usage}
