"""Config group `expander`: hits to larger passages around them."""

from typing import TYPE_CHECKING

from ragauge.contract.loading import lazily

if TYPE_CHECKING:
    from ragauge.retrieval.expanders._neighbours import NeighbourExpander
    from ragauge.retrieval.expanders._none import NoExpander
    from ragauge.retrieval.expanders._parent import DocumentExpander, ParentExpander

__all__ = ["DocumentExpander", "NeighbourExpander", "NoExpander", "ParentExpander"]

__getattr__ = lazily(__name__)
