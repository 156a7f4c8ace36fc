"""Judges that were trained: small networks that answer yes-or-no questions on passages and answers (ARES)."""
