"""Optional columns and values of topics, and the choice of judged ones."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.contract.frames import SCHEMAS

# Yes-or-no questions that a trained judge answers: is the context relevant to the question; does the answer follow
# from it; does it answer the question. Columns of these names, 1 or 0, are what people say in a file of human labels.
CONTEXT_RELEVANCE, ANSWER_FAITHFULNESS, ANSWER_RELEVANCE = QUESTIONS = (
    "context_relevance", "answer_faithfulness", "answer_relevance",
)  # fmt: skip


def measured_as(question: str) -> str:
    """Name of the answer measure with the trained judge's probability of yes."""
    return f"ares_{question}"


def labelled_as(question: str) -> str:
    """Name of the outcomes' column with the human label."""
    return f"human_{question}"


# Attribute of topics without ids whose question stands in several rows: the qid of the first.
SAME_QUESTION = "same_question"
# Of a conversation; all but the history are attributes. A standalone question can be understood without the history.
HISTORY, CONVERSATION, TURN, STANDALONE = "history", "conversation", "turn", "standalone_question"

_OF_MODEL = (*SCHEMAS["topics"].columns, *SCHEMAS["topics"].optional)


def attributes_of(topics: pd.DataFrame) -> list[str]:
    """The columns by which topics can be grouped: all outside the data model, in order.

    A value is a text or a number, and may be missing.
    """
    return [str(column) for column in topics.columns if column not in _OF_MODEL]


def with_history(topics: pd.DataFrame) -> pd.DataFrame:
    """The topics with each question preceded by the earlier turns of its conversation, for chat models.

    A question without earlier turns stays as it is.
    """
    if HISTORY not in topics:
        return topics
    asked = [
        f"Earlier in this conversation:\n{said}\nNow: {question}" if (said := spoken(history)) else question
        for question, history in zip(topics["query"], topics[HISTORY], strict=True)
    ]
    return topics.assign(query=pd.array(asked, dtype="str"))


def spoken(history: Sequence[str]) -> str:
    """Earlier turns as a text, a line for each question and each answer."""
    said = zip(("User", "Assistant") * (len(history) // 2), history, strict=True)
    return "\n".join(f"{who}: {text}" for who, text in said if text)


def is_unanswerable(topics: pd.DataFrame) -> pd.Series:
    """Whether the dataset marks each topic as unanswerable from the documents, bool by row."""
    if "unanswerable" not in topics:
        return pd.Series(False, index=topics.index)
    return topics["unanswerable"].astype(bool)


def references(topics: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """The reference answers of every qid: those of `answers` where it lists any, else `answer`; () for none.

    DataError where `answers` holds a text in place of a list.
    """
    found: dict[str, tuple[str, ...]] = {
        qid: (answer,) if isinstance(answer, str) else ()
        for qid, answer in zip(topics["qid"].tolist(), topics["answer"].tolist(), strict=True)
    }
    if "answers" not in topics:
        return found
    for qid, several in zip(topics["qid"], topics["answers"], strict=True):
        if isinstance(several, str):
            raise DataError(f"topics frame: column answers (qid={qid!r}): {several!r} is a text, not a list")
        listed = [] if several is None or several is pd.NA or isinstance(several, float) else list(several)
        if listed:
            found[qid] = tuple(map(str, listed))
    return found


def wrong_answers(topics: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """By qid, the answers from documents with a changed fact; qids without any are left out."""
    if "wrong_answers" not in topics:
        return {}
    pairs = zip(topics["qid"], topics["wrong_answers"], strict=True)
    return {qid: tuple(map(str, several)) for qid, several in pairs if len(several)}


def without_reference(topics: pd.DataFrame) -> set[str]:
    """The answerable qids without a reference answer."""
    known = references(topics)
    marked = set(topics["qid"][is_unanswerable(topics)])
    return {qid for qid, answers in known.items() if not answers and qid not in marked}


def scorable(evidence: pd.DataFrame, topics: pd.DataFrame) -> pd.DataFrame:
    """The evidence parts that contexts are scored by: those with a text, of answerable topics."""
    if not evidence["text"].isna().any() and "unanswerable" not in topics:
        return evidence
    marked = set(topics["qid"][is_unanswerable(topics)])
    kept = evidence["text"].notna() & ~evidence["qid"].isin(marked)
    return evidence[kept].reset_index(drop=True)
