import pandas as pd
import pyterrier as pt

from ragauge.contract import frames
from ragauge.retrieval.retrievers import NoRetrieval


def test_finds_nothing(tmp_path):
    chunks = pd.DataFrame({"docno": ["a"], "text": ["apple"]})
    retriever = NoRetrieval()
    retriever.build_index(chunks, tmp_path, None)
    transformer = retriever.transformer(chunks, tmp_path, None)
    assert isinstance(transformer, pt.Transformer)
    run = transformer(pd.DataFrame({"qid": ["1"], "query": ["apple"]}))
    assert len(run) == 0
    frames.check("run", run)
    assert list(tmp_path.iterdir()) == []
    assert retriever.top_k == 0
    assert retriever.index_identity() == {"index": "none", "version": 1}
