"""Long-context order against LangChain's LongContextReorder."""

import pytest

from ragauge.retrieval.order import long_context_order


@pytest.mark.parametrize("n", range(31))
def test_the_same_order(n):
    transformers = pytest.importorskip("langchain_community.document_transformers")
    from langchain_core.documents import Document

    documents = [Document(page_content=str(rank)) for rank in range(n)]
    reordered = transformers.LongContextReorder().transform_documents(documents)
    assert long_context_order(n).tolist() == [int(document.page_content) for document in reordered]
