"""Config group `expander`: hits to larger passages around them."""

from ragauge.retrieval.expanders._none import NoExpander

__all__ = ["NoExpander"]
