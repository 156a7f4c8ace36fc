"""`retriever=learned_sparse`, `retriever=late_interaction`: models that give a text more than one dense vector."""
