"""`reranker=cross_encoder` and `reranker=llm`: a network scores each hit, or a chat model orders the hits."""
