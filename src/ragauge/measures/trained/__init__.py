"""Judges that were trained: small networks that answer yes-or-no questions on passages and answers (ARES)."""

from ragauge.measures.trained.ares import Ares

__all__ = ["Ares"]
