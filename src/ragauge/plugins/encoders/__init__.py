"""`retriever=learned_sparse`, `retriever=late_interaction`: models beyond one dense vector per text."""
