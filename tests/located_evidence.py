"""Evidence that a dataset says where it stands, found again from its texts alone."""

from __future__ import annotations

import pandas as pd

from ragauge.contract.datasets import Dataset
from ragauge.measures.located import locate


def no_evidence_is_lost(data: Dataset) -> None:
    """Fails where a part of the evidence is not found in the documents, or another is found."""
    evidence, lost = locate(data.evidence, data.docs)
    assert lost.empty
    pd.testing.assert_frame_equal(evidence, data.evidence)
    bare = data.evidence.assign(docno=pd.Series([None] * len(data.evidence), dtype="str"))
    again, lost = locate(bare, data.docs)
    known = again["docno"].notna()
    assert lost.empty
    assert known.mean() > 0.8
    assert again["docno"][known].equals(data.evidence["docno"][known])
