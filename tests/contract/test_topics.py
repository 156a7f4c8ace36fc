"""What of a dataset's evidence a context is scored by."""

from __future__ import annotations

import pandas as pd

from ragauge.contract.topics import scorable


def test_evidence_counts_where_it_has_a_text_and_its_topic_an_answer() -> None:
    evidence = pd.DataFrame({"qid": ["1", "1", "2", "3"], "text": ["one", None, "two", None]})
    topics = pd.DataFrame({"qid": ["1", "2", "3"]})
    assert scorable(evidence, topics)["text"].tolist() == ["one", "two"]
    marked = scorable(evidence, topics.assign(unanswerable=[False, True, True]))
    assert (marked["text"].tolist(), marked.index.tolist()) == (["one"], [0])
    whole = evidence.dropna()
    assert scorable(whole, topics) is whole
