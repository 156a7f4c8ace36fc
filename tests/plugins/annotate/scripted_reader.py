"""A small corpus whose questions have no evidence, and an evaluator that finds it, errs and invents on order."""

from __future__ import annotations

import json
import re
from pathlib import Path

TOWNS = ("Aldor", "Belmar", "Cresta", "Dorwen", "Elbrin", "Ferrin", "Gorlan", "Hesper")
RIVERS = ("Aare", "Birs", "Cher", "Drau", "Enns", "Fulda", "Glan", "Havel")


def bridge(town: str) -> str:
    """The sentence that answers the question on a town."""
    return f"The bridge of {town} crosses the {RIVERS[TOWNS.index(town)]}."


def question(town: str) -> str:
    return f"Which river does the bridge of {town} cross?"


def write(folder: Path) -> None:
    """corpus.jsonl, questions.jsonl and a retriever `long` beside bm25, in `conf`.

    The document of Aldor stands twice. Hesper's question has its evidence, Gorlan's is unanswerable.
    """
    (folder / "conf" / "retriever").mkdir(parents=True)
    (folder / "conf" / "retriever" / "long.yaml").write_text("defaults:\n  - bm25\n  - _self_\nb: 1.0\n", "utf-8")
    docs = [
        {"docno": town, "title": town, "text": f"{town} is a town of\n  markets. {bridge(town)} It is {number} m long."}
        for number, town in enumerate(TOWNS, start=90)
    ]
    docs.append({**docs[0], "docno": "Copy"})
    docs += [{"docno": f"x{i}", "title": "", "text": f"Bridge number {i} has no river below it."} for i in range(3)]
    topics = [{"qid": town, "query": question(town), "kind": "river", "length": 2.5} for town in TOWNS]
    topics[0] |= {"answers": ["Aare", "the Aare"]}
    topics[1] |= {"answer": "Birs"}
    topics[6] |= {"unanswerable": True}
    topics[7] |= {"evidence": [{"docno": "Hesper", "text": bridge("Hesper")}]}
    for name, rows in (("corpus", docs), ("questions", topics)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")


def asked_about(prompt: str) -> tuple[str, str]:
    """The question and the passage of a prompt."""
    [first, second] = re.findall(r"<material-\w+>\n(.*?)\n</material-\w+>", prompt, re.S)
    return json.loads(first), json.loads(second)


def reply(prompt: str) -> str:
    """Grade 3 where the bridge is that of the question; Belmar's sentence is misquoted, Cresta's reply unreadable."""
    asked, passage = asked_about(prompt)
    [town] = [town for town in TOWNS if f" {town} " in asked]
    if bridge(town) not in passage:
        return json.dumps({"grade": 1 if "bridge" in passage else 0, "quotes": ["The bridge of Nowhere is old."]})
    if town == "Cresta":
        return "The passage is about Cresta."
    if town == "Belmar":
        return json.dumps({"grade": 3, "quotes": ["The bridge of Belmar crosses a river."]})
    return f"```json\n{json.dumps({'grade': 3, 'quotes': [bridge(town), f'{town} is a town of markets.']})}\n```"
