"""What every room speaks: frames, protocols, errors, redaction, identity; and the version of this code."""

__version__ = "0.2.0"
