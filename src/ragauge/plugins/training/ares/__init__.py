"""Trained judges: small networks that answer yes-or-no questions about passages and answers (ARES)."""
