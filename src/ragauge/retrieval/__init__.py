"""From documents to contexts: chunkers, embedders, retrievers, rerankers, and the cut at a budget."""
