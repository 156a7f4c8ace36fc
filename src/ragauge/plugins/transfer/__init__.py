"""Transfer: does the predictor hold for an unseen retriever, dataset, chunker or LLM?"""
