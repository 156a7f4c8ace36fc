"""Documents with a changed fact: copies of a document in which one fact is altered for one topic.

They are documents of the corpus like others; their docno names their topic and the document that they copy.
"""

from __future__ import annotations

MARK = "~changed~"


def changed_docno(qid: str, docno: str) -> str:
    """The docno of the copy of a document with a topic's fact altered."""
    return f"{qid}{MARK}{docno}"


def changed_from(docno: str) -> tuple[str, str] | None:
    """The qid and the original docno of such a copy; None for any other document."""
    qid, mark, original = docno.partition(MARK)
    return (qid, original) if mark else None
