"""The types and rules that all rooms share: frames, protocols, errors, redaction, identity; and the version of this
code."""

__version__ = "0.2.0"
