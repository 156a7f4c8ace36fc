"""A team's retriever, chat model and experiment for ragauge."""
