"""Assigns each failed topic one cause by rules in a fixed order.

Order: 1. the verdict is missing. 2. There is no answer. 3. A part of the evidence is not in the context, and the step
that lost most of it decides. 4. All of it is there, in the middle third. 5. The LLM erred although all of it is there.
6. The answer goes beyond the context.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.answer_measures import NO_REFERENCE
from ragauge.contract.frames import HALLUCINATIONS, JUDGE_CLASSES
from ragauge.diagnose.funnel import STANDS, STEPS, steps_of
from ragauge.diagnose.places import MIDDLE
from ragauge.estimate.outcomes import asked, labels_of, right_of

FAITHFUL = "faithfulness"
_FAITHFUL_FROM = 0.5  # of that measure: the answer is one of the context


@dataclass(frozen=True)
class Cause:
    """A cause of failure: its name in metrics, its label, and what to try (a sentence, overrides)."""

    slug: str
    name: str
    advice: str
    overrides: str = ""


_ALL = (
    Cause("not_in_corpus", "not in the corpus",
          "Add documents that hold the evidence, or check how documents are read: no document has this text.",
          "dataset.path=<more documents>"),
    Cause("chunker", "cut by the chunker",
          "Make chunks larger, let them overlap, or put their neighbours back: no chunk holds all of the evidence.",
          "chunker=tokens chunker.size=256 chunker.overlap=64 expander=neighbours"),
    Cause("not_retrieved", "not retrieved",
          "Ask for more hits, search by words and meaning at once, or by several queries.",
          "retriever=hybrid retriever.top_k=100 rewriter=multi_query"),
    Cause("reranker", "lost by the reranker",
          "Compare without the reranker, or with a greater depth: it dropped the evidence or put it too low.",
          "reranker=none,cross_encoder reranker.depth=100"),
    Cause("compressed", "compressed away",
          "Keep more of each passage: the expander or the compressor left the evidence out.",
          "compressor=sentences compressor.share=0.8"),
    Cause("budget", "beyond the budget",
          "Give the LLM more tokens, or rank the evidence higher: it stands too far down.",
          "n_tokens=2000 reranker=cross_encoder"),
    Cause("middle", "lost in the middle",
          "Put the best passages at both ends of the context: all evidence stood in its middle third. This cause is "
          "a suspicion.",
          "order=long_context"),
    Cause("generation", "generation error",
          "Try another model, or a prompt that asks for a full answer: the LLM had all of the evidence.",
          "llm=<another> llm.prompt_with_documents=<file>"),
    Cause("unsupported", "unsupported answer",
          "Ask the LLM to keep to the documents, or choose another model: it said what the context does not say.",
          "llm.prompt_with_documents=<file> llm.chat.temperature=0"),
    Cause("judge_missing", "judge missing",
          "Run again, which asks for the missing verdicts alone, or choose another judge: no verdict could be read.",
          "judge=<another>"),
    Cause("unknown", "no evidence known",
          "Mark the evidence of these topics, or let a chat model find it in your documents: without it nothing shows "
          "at which step a topic failed.",
          "ragauge annotate evaluator=openai out=annotated.jsonl"),
)  # fmt: skip
CAUSES: Mapping[str, Cause] = {cause.name: cause for cause in _ALL}
_BY_SLUG = {cause.slug: cause.name for cause in _ALL}
_LOST = ("not_in_corpus", "chunker", "not_retrieved", "reranker", "compressed", "budget")
# Those that are known without an answer.
OF_RETRIEVAL = tuple(_BY_SLUG[slug] for slug in _LOST)
_LOST_AT = {
    "corpus": "not_in_corpus",
    "best_chunk": "chunker",
    "candidates": "not_retrieved",
    "reranked": "reranker",
    "expanded": "compressed",
    "compressed": "compressed",
    "context": "budget",
}


def causes(outcomes: pd.DataFrame, parts: pd.DataFrame, judged: bool = True) -> pd.DataFrame:
    """The cause of every topic that failed: qid, cause (its name), decided_by (a sentence).

    `outcomes` has a row per topic: qid, label and answer; evidence_place (the third of the context that all of its
    evidence stands in); answer_from_context (whether every word of the answer stands in context or question). It has
    unanswerable, judge_status, answer_error, judged and faithfulness where they are known. `parts` has a row per
    evidence part, and a column per step of the funnel; `unreranked` is what the order before reranking would have
    within the budget.

    A topic fails where its answer was judged, and not right: any class but 5 of an answerable topic, any but 1 of an
    unanswerable one. It fails, too, where the verdict or the answer is missing. Not `judged`: a topic fails whose
    evidence does not all stand in the context. The rules, the first that holds decides:

    1. the verdict on an answer is missing: judge missing;
    2. there is no answer: generation error;
    3. unanswerable, and answered: unsupported answer;
    4. no evidence is known: no evidence known;
    5. a part of the evidence (measure below 0.9) does not stand in the context: among the steps after the last one that
       had it, the one that lost most of it decides. Lost within the budget, but within it before reranking: lost by the
       reranker. With several such parts the one decides whose share in the context is least;
    6. all stands in the middle third of the context: lost in the middle, which is a suspicion;
    7. class 1 or 3: generation error. Class 2 or 4: generation error where the answer comes from the context, else
       unsupported answer. It comes from the context if faithfulness, where measured, is at least 0.5; without
       faithfulness, if every content word of the answer stands in context or question.
    """
    rows = in_question(outcomes) if judged else outcomes
    rows = rows.reset_index(drop=True)
    lost = _first_lost(parts)
    label = labels_of(rows) if judged else np.zeros(len(rows), dtype=int)
    unanswerable = _column(rows, "unanswerable", False).eq(True).to_numpy(dtype=bool)
    answered = rows["answer"].notna().to_numpy()
    step = rows["qid"].map(lost["cause"]).to_numpy(dtype=object)
    known = rows["qid"].isin(parts["qid"]).to_numpy()
    incomplete = rows["qid"].isin(lost.index).to_numpy()
    if not judged:
        failed = incomplete & ~unanswerable
        return _frame(rows, step, rows["qid"].map(lost["decided_by"]).to_numpy(dtype=object), failed)
    failed = ~right_of(rows)
    middle = _column(rows, "evidence_place", "").eq(MIDDLE).to_numpy(dtype=bool)
    faithful, told = _of_context(rows)
    wrong = np.isin(label, HALLUCINATIONS)
    classes: Mapping[Any, str] = JUDGE_CLASSES
    named = pd.Series(label).map(lambda at: classes.get(at, "no verdict")).to_numpy(dtype=object)
    status = _column(rows, "judge_status", "").fillna("").astype(str).to_numpy(dtype=object)
    error = _column(rows, "answer_error", "").fillna("").astype(str).to_numpy(dtype=object)
    said = _column(rows, "reason", "").fillna("").astype(str)
    reason = said.where(said.eq(""), ": " + said).to_numpy(dtype=object)
    rules = [
        ((label == 0) & answered, "judge_missing", "no verdict: " + status + reason),
        (~answered, "generation", "no answer: " + error),
        (unanswerable, "unsupported", "answered what the documents do not answer: " + named),
        (~known, "unknown", named),
        (incomplete, None, rows["qid"].map(lost["decided_by"]).to_numpy(dtype=object)),
        (middle, "middle", "all evidence stands in the middle third: " + named),
        (~wrong, "generation", "all evidence stands in the context: " + named),
        (wrong & faithful, "generation", "all evidence stands in the context: " + named + ", " + told),
        (wrong, "unsupported", named + ", " + told),
    ]  # fmt: skip
    found = np.full(len(rows), None, dtype=object)
    why = np.full(len(rows), "", dtype=object)
    open_rows = failed.copy()
    for holds, slug, decided in rules:
        here = open_rows & holds
        found[here] = step[here] if slug is None else _BY_SLUG[slug]
        why[here] = np.broadcast_to(decided, len(rows))[here]
        open_rows &= ~here
    return _frame(rows, found, why, failed)


def _frame(rows: pd.DataFrame, cause: np.ndarray, why: np.ndarray, failed: np.ndarray) -> pd.DataFrame:
    found = pd.DataFrame({"qid": rows["qid"], "cause": cause, "decided_by": why})[failed]
    told = found["decided_by"].astype("str").str.removesuffix(": ")
    return found.assign(decided_by=told).astype({"cause": "str"}).reset_index(drop=True)


def in_question(outcomes: pd.DataFrame) -> pd.DataFrame:
    """The rows of topics that can fail: they were sampled for judging and have a reference to judge by."""
    rows = asked(outcomes)
    return rows[_column(rows, "judge_status", "").ne(NO_REFERENCE).fillna(True)]


def _column(rows: pd.DataFrame, name: str, default: Any) -> pd.Series:
    return rows[name] if name in rows else pd.Series(default, index=rows.index)


def _of_context(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Whether each answer comes from its context, with the reason."""
    by_words = _column(rows, "answer_from_context", False).eq(True).to_numpy(dtype=bool)
    words = np.where(
        by_words, "its words stand in the context", "it has words that stand neither in context nor question"
    ).astype(object)
    if FAITHFUL not in rows:
        return by_words, words
    value = rows[FAITHFUL].astype(float)
    known = value.notna().to_numpy()
    return (
        np.where(known, value.ge(_FAITHFUL_FROM), by_words),
        np.where(known, "faithfulness " + value.map("{:.2f}".format), words).astype(object),
    )


def _first_lost(parts: pd.DataFrame) -> pd.DataFrame:
    """Cause and decided_by, by qid, of every topic with an evidence part that is not in the context."""
    nothing = pd.DataFrame({"cause": pd.Series(dtype=object), "decided_by": pd.Series(dtype=object)})
    steps = steps_of(parts)
    if not steps:
        return nothing
    missing = parts[parts["context"] < STANDS]
    values = missing[steps].to_numpy(dtype=float)
    if not len(values):
        return nothing
    at = _lost_at(values)
    slugs = np.array([_LOST_AT[step] for step in steps], dtype=object)[at]
    decided = [_told(row, steps, number, part) for row, number, part in
               zip(values, at.tolist(), missing["part"].tolist(), strict=True)]  # fmt: skip
    if "unreranked" in missing:
        by_order = (slugs == "budget") & (missing["unreranked"].to_numpy(dtype=float) >= STANDS)
        slugs[by_order] = "reranker"
        for i in np.flatnonzero(by_order).tolist():
            decided[i] += ", where the order before reranking had it"
    found = pd.DataFrame({
        "qid": missing["qid"].to_numpy(), "left": values[:, -1], "decided_by": decided,
        "cause": [_BY_SLUG[slug] for slug in slugs],
    })  # fmt: skip
    return found.sort_values("left", kind="stable").drop_duplicates("qid").set_index("qid")


def _lost_at(values: np.ndarray) -> np.ndarray:
    """Index of the step that lost most of each part, after the last step that had it; int64 [parts].

    `values` [parts, steps] are those of parts that the last step does not have.
    """
    n = values.shape[1]
    stands = values >= STANDS
    last = np.where(stands.any(axis=1), n - 1 - stands[:, ::-1].argmax(axis=1), -1)
    losses = -np.diff(values, axis=1, prepend=1.0)
    losses[np.arange(n) <= last[:, None]] = -np.inf
    found: np.ndarray = losses.argmax(axis=1)
    return found


def _told(values: np.ndarray, steps: list[str], at: int, part: int) -> str:
    """A sentence with the shares of a part before and after the step that lost it."""
    after = f"{values[at]:.2f} {STEPS[steps[at]]}"
    before = f"{values[at - 1]:.2f} {STEPS[steps[at - 1]]}, " if at else ""
    return f"evidence {part + 1}: {before}{after}"
