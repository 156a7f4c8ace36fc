"""Conversations: samples of several turns, questions that depend on earlier ones, and MTRAG's files."""
