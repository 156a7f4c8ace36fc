"""Config group `expander`: hits to larger passages around them."""

from ragauge.retrieval.expanders._neighbours import NeighbourExpander
from ragauge.retrieval.expanders._none import NoExpander
from ragauge.retrieval.expanders._parent import DocumentExpander, ParentExpander

__all__ = ["DocumentExpander", "NeighbourExpander", "NoExpander", "ParentExpander"]
