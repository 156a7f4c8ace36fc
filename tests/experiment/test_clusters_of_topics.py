"""Which clusters a job's topics are in, and what is said of them."""

from __future__ import annotations

import dataclasses

import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError
from ragauge.estimate.clusters import SHARED, clustered_line, clustered_text, clusterings
from ragauge.estimate.outcomes import CLUSTER
from ragauge.experiment.clusters import clusters_of_topics

TOPICS = pd.DataFrame({"qid": ["a", "b", "c", "d"], "query": "?", "answer": "!", "user": ["u", "u", None, 7]})
EVIDENCE = pd.DataFrame({"qid": ["a", "b", "c"], "docno": ["1", "1", "2"]})


def test_documents_and_attributes_name_clusters():
    found = clusters_of_topics(TOPICS, EVIDENCE, "document")
    assert found[CLUSTER].to_dict() == {"a": "1", "b": "1", "c": "c", "d": "d"}
    assert found[SHARED].equals(found[CLUSTER].rename(SHARED))
    by_user = clusters_of_topics(TOPICS, EVIDENCE, "user")
    assert by_user[CLUSTER].to_dict() == {"a": "u", "b": "u", "c": "c", "d": "7"}
    # A dataset's own attribute goes before the documents.
    own = clusters_of_topics(TOPICS.rename(columns={"user": "document"}), EVIDENCE, "document")
    assert own[CLUSTER]["d"] == "7"


def test_shared_evidence_is_noticed_without_being_asked():
    assert list(clusters_of_topics(TOPICS, EVIDENCE, None)) == [SHARED]
    assert clusters_of_topics(TOPICS, EVIDENCE.iloc[1:], None).columns.empty


def test_without_a_choice_the_turns_of_a_conversation_are_a_cluster():
    turns = TOPICS.assign(conversation=["x", "x", "y", None], history=[[], ["?", "!"], [], []])
    assert clusters_of_topics(turns, EVIDENCE, None)[CLUSTER].tolist() == ["x", "x", "y", "d"]
    assert CLUSTER not in clusters_of_topics(turns.drop(columns="history"), EVIDENCE, None)
    assert CLUSTER not in clusters_of_topics(turns.assign(conversation="x"), EVIDENCE, None)
    assert clusters_of_topics(turns, EVIDENCE, "document")[CLUSTER].tolist() == ["1", "1", "c", "d"]


def test_what_is_no_cluster_is_told_in_one_line(caplog: pytest.LogCaptureFixture):
    with pytest.raises(ConfigError, match=r"cluster=usr: .* no such attribute; there are user, document"):
        clusters_of_topics(TOPICS, EVIDENCE, "usr")
    with pytest.raises(ConfigError, match="all 4 topics are one cluster"):
        clusters_of_topics(TOPICS.assign(user="u"), EVIDENCE, "user")
    assert CLUSTER not in clusters_of_topics(TOPICS, EVIDENCE.iloc[1:], "document")
    assert "every topic is a cluster of its own" in caplog.text


def rows(column: str, clusters: list[str]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "qid": list("abcd"),
            "ir_score": [1.0, 1.0, 0.0, 0.0],
            "label": pd.array([5, 5, 1, None], dtype="Int8"),
            column: clusters,
        }
    )


def test_the_sentence_says_what_clusters_do_to_intervals():
    (one,) = clusterings(rows(SHARED, ["1", "1", "2", "2"]))
    assert (one.n_topics, one.n_clusters, one.icc) == (4, 2, 1.0)
    text = clustered_text([one], chosen=False)
    assert text.startswith(
        "topics share documents of their evidence: 2 clusters of 4 topics (the largest has 2), intra"
    )
    assert text.endswith("times as wide: cluster=document makes them so")
    assert clustered_line([one], False).startswith("shared documents: cluster=document makes intervals ")
    assert clustered_line([dataclasses.replace(one, width_ratio=1.09)], False) == ""
    (chosen,) = clusterings(rows(CLUSTER, ["1", "1", "2", "2"]))
    assert clustered_text([chosen], True).startswith("intervals and tests are over 2 clusters of 4 topics")
    # Without verdicts it is of the IR score.
    (scores,) = clusterings(rows(SHARED, ["1", "2", "1", "2"]).assign(label=pd.array([None] * 4, dtype="Int8")))
    assert scores.icc == -1
    assert clusterings(rows(SHARED, ["1", "2", "3", "4"])) == []
    assert clusterings(rows("other", ["1", "1", "1", "1"])) == []
    (all_one,) = clusterings(rows(SHARED, ["1"] * 4))
    assert "all 4 topics hang together" in clustered_text([all_one], False)
    assert clustered_line([all_one], False).startswith("all topics share documents, intervals may be too narrow")
    assert clustered_line([chosen], True).startswith("intervals over 2 clusters of topics are ")
