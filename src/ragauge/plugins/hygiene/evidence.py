"""Evidence in no document or in several, and reference answers that the evidence does not hold."""

from __future__ import annotations

import pandas as pd

from ragauge.contract.frames import rows_where
from ragauge.contract.topics import is_unanswerable, scorable
from ragauge.measures.located import documents_with, locate
from ragauge.measures.tokens import matched, place_of
from ragauge.plugins.hygiene.found import Found, Item, QuestionSet
from ragauge.texts.folding import fold_space, fold_text

_LONGEST = 5  # tokens of a reference answer that is expected word for word, as of Natural Questions' short answers
_SHARE = 0.5  # of the tokens of a longer one
_NO_TEXT = "no topic has evidence with a text"


def evidence_in_several_documents(of: QuestionSet) -> Found:
    """Parts of the evidence that two or more documents hold."""
    parts = scorable(of.evidence, of.topics)
    if parts.empty:
        return Found(None, 0, _NO_TEXT)
    texts = [fold_space(fold_text(text, of.fold)) for text in parts["text"]]
    holders = documents_with({text for text in texts if text}, of.docs, of.fold)
    items = []
    for qid, part, named, text in zip(parts["qid"], parts["part"], parts["docno"], texts, strict=True):
        docnos = holders.get(text, ())
        if len(docnos) > 1:
            names = f"which names {named}" if isinstance(named, str) else "which names no document"
            items.append(Item(qid, tuple(docnos), f"part {part}, {names}"))
    return Found(items, len(parts))


def lost_evidence(of: QuestionSet) -> Found:
    """Parts of the evidence that no document holds, or not the one that they name."""
    parts = scorable(of.evidence, of.topics)
    if parts.empty:
        return Found(None, 0, _NO_TEXT)
    items = []
    for row in locate(parts, of.docs, of.fold)[1].to_dict("records"):
        near = (str(row["near_docno"]),) if isinstance(row["near_docno"], str) else ()
        where = f"not in {row['docno']}, which it names" if isinstance(row["docno"], str) else "in no document"
        items.append(Item(str(row["qid"]), near, f"part {row['part']} is {where}: {row['text']}"))
    return Found(items, len(parts))


def references_not_in_evidence(of: QuestionSet) -> Found:
    """Topics none of whose reference answers stands in their evidence."""
    evidence, known = _evidence_tokens(of), of.references()
    qids = [qid for qid in of.topics["qid"][~is_unanswerable(of.topics)] if qid in known and qid in evidence]
    items = [
        Item(qid, (), f"reference answer: {known[qid][0]}")
        for qid in qids
        if not any(_holds(piece, of.tokens(one)) for one in known[qid] for piece in evidence[qid])
    ]
    if not qids:
        return Found(None, 0, "no topic has both evidence and a reference answer beside yes and no")
    return Found(items, len(qids))


def _holds(evidence: list[str], reference: list[str]) -> bool:
    if len(reference) <= _LONGEST:
        return place_of(reference, evidence) >= 0
    return matched(reference, [evidence], 1) >= _SHARE * len(reference)


def _evidence_tokens(of: QuestionSet) -> dict[str, list[list[str]]]:
    """By qid, the tokens of each piece of evidence; those of the document where a piece has no text."""
    bare = of.evidence[of.evidence["text"].isna()].dropna(subset="docno")
    held = rows_where(of.docs, "docno", set(bare["docno"]))
    texts = dict(zip(held["docno"], held["text"], strict=True))
    found: dict[str, list[list[str]]] = {}
    for qid, docno, text in zip(of.evidence["qid"], of.evidence["docno"], of.evidence["text"], strict=True):
        piece = texts.get(docno) if pd.isna(text) else text
        if isinstance(piece, str):
            found.setdefault(qid, []).append(of.tokens(piece))
    return found
