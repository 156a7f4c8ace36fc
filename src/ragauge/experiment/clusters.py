"""Clusters of a job's topics: those of `cluster`, and topics with shared evidence documents."""

from __future__ import annotations

import logging

import pandas as pd

from ragauge.contract.errors import ConfigError
from ragauge.contract.outcomes import CLUSTER, SHARED
from ragauge.contract.topics import CONVERSATION, HISTORY, SAME_QUESTION, attributes_of
from ragauge.estimate.clusters import connected
from ragauge.estimate.slicing import text_of

DOCUMENT = "document"

log = logging.getLogger(__name__)


def clusters_of_topics(topics: pd.DataFrame, evidence: pd.DataFrame, name: str | None) -> pd.DataFrame:
    """By qid, `topic_cluster` as chosen by `name`, and `evidence_cluster` of topics that share documents.

    `document` is the clusters of shared evidence (`connected`), unless the topics have an attribute of that name. A
    topic without a value is a cluster of its own. Where every topic is, there is no column. Without a `name` the
    clusters of topics with a history are their conversations, and those of rows without ids equal questions.
    ConfigError for a name that is no attribute, and for one cluster of all topics.
    """
    qids = topics["qid"].tolist()
    shared = connected(evidence, qids)
    found = pd.DataFrame(index=shared.index)
    if shared.nunique() < len(qids):
        found[SHARED] = shared
    if name is None and {HISTORY, CONVERSATION} <= set(topics) and 1 < topics[CONVERSATION].nunique() < len(qids):
        name = CONVERSATION
    if name is None and SAME_QUESTION in topics and topics[SAME_QUESTION].nunique(dropna=False) > 1:
        name = SAME_QUESTION
    if name is None:
        return found
    attributes = attributes_of(topics)
    if name in attributes:
        values = pd.Series([text_of(v) if pd.notna(v) else "" for v in topics[name]], shared.index)
        chosen = values.where(values != "", pd.Series(qids, shared.index))
    elif name == DOCUMENT:
        chosen = shared
    else:
        raise ConfigError(
            f"cluster={name}: the topics of this dataset have no such attribute; there are "
            f"{', '.join([*attributes, DOCUMENT])} (topics that share a document of their evidence)"
        )
    if told_apart(chosen, name):
        found[CLUSTER] = chosen
    return found


def told_apart(clusters: pd.Series, name: str) -> bool:
    """Whether any of `clusters` (one per topic) holds several topics; ConfigError if one holds all."""
    n, topics = clusters.nunique(), len(clusters)
    if n == topics:
        log.warning("cluster=%s: every topic is a cluster of its own, so that nothing changes", name)
    elif n == 1:
        raise ConfigError(f"cluster={name}: all {topics} topics are one cluster, and an interval takes two")
    return bool(n < topics)
