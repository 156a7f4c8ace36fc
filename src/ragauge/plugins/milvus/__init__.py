"""`retriever=milvus`: vectors, full text or both in Milvus, embedded or a cluster (docs/retrievers.md)."""
