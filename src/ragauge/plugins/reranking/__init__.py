"""`reranker=llm`: a chat model puts the hits of a topic in order."""
