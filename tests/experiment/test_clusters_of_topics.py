"""Which clusters a job's topics are in, and what is said of them."""

from __future__ import annotations

import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError
from ragauge.contract.outcomes import CLUSTER, SHARED
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
