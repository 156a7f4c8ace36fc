"""Transfer: does the predictor hold for a retriever, dataset, chunker or LLM that it has not seen?"""
