"""Conversations: samples of several turns, questions that lean on earlier ones, and MTRAG's files."""
