"""Stages from ranked chunks to contexts: passages, their order, the cut at a budget."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ragauge.contract import frames
from ragauge.contract.component import Tokenizer, Tools
from ragauge.contract.identity import identity
from ragauge.contract.retrieval import Compressor, ContextOrder, Expander
from ragauge.contract.stages import Components, Frames, Incomplete, Read, Reads, Stage
from ragauge.experiment.stages.retrieval import retrieved_chunks, standalone, standalone_reads
from ragauge.retrieval.contexts import build_contexts, contexts_at
from ragauge.retrieval.order import LongContextOrder
from ragauge.retrieval.passages import in_rank_order, passages_of


class Expand(Stage):
    """Hits to larger passages around them."""

    name = "expanded"
    reads = (Read("run"), Read("chunks"), Read("docs"))
    makes = ("passages",)
    doing = "expanding {run:,} hits"
    group = "expander"

    @property
    def component(self) -> Expander:
        return self.components.expander

    def make(self, reads: Reads, tools: Tools) -> Frames:
        # The documents of the hits, and all of their chunks.
        parents = retrieved_chunks(reads)["parent"].unique()
        chunks = reads.where("chunks", "parent", parents)
        docs = reads.where("docs", "docno", parents)
        made = self.component.expand(reads["run"], chunks, docs, tools)
        return {"passages": frames.check("passages", made, type(self.component).__name__)}


class Compress(Stage):
    """Passages to their relevant parts, with their numbers of characters before and after."""

    name = "compressed"
    makes = ("passages", "compression")
    doing = "compressing what was found for {topics:,} topics"
    group = "compressor"

    @property
    def reads(self) -> tuple[Read, ...]:  # type: ignore[override]
        expanded = self.components.expander.kind != "none"
        return (*map(Read, ("passages",) if expanded else ("run", "chunks")), *standalone_reads(self.components))

    @property
    def component(self) -> Compressor:
        return self.components.compressor

    def make(self, reads: Reads, tools: Tools) -> Frames:
        expanded = self.components.expander.kind != "none"
        passages = reads["passages"] if expanded else passages_of(reads["run"], retrieved_chunks(reads))
        passages = in_rank_order(passages)
        depth = self.component.depth
        if depth is not None:
            passages = passages[passages["rank"] < depth].reset_index(drop=True)
        made = self.component.compress(passages, standalone(reads, self.components), tools)
        frames.check("passages", made, type(self.component).__name__)
        sizes = (int(found["text"].str.len().sum()) for found in (passages, made))
        compression = pd.DataFrame([tuple(sizes)], columns=["characters_in", "characters_out"])
        found = {"passages": made, "compression": compression}
        if "failed" in made and made["failed"].any():
            raise Incomplete(found)  # an LLM failed for some
        return found


def texts_of_ranking(components: Components) -> tuple[str, ...]:
    """The frames with the texts to lay out: the chunks, unless a component has changed them."""
    parts = (components.expander, components.compressor)
    return ("passages",) if any(part.kind != "none" for part in parts) else ("run", "chunks")


class LayOut(Stage):
    """C, and the ends of every C_N of the grid."""

    name = "context"
    makes = ("layouts", "prefixes")
    doing = "laying out the contexts of {topics:,} topics"

    @property
    def reads(self) -> tuple[Read, ...]:  # type: ignore[override]
        return (*map(Read, texts_of_ranking(self.components)), Read("topics", columns=("qid",)))

    @property
    def component(self) -> Tokenizer:
        return self.components.tokenizer

    @property
    def uses(self) -> frozenset[str]:
        return frozenset({"tokenizer"})

    @property
    def _order(self) -> ContextOrder:
        """The config's order, or the retriever's own."""
        if self.components.retriever.reorder_after_cut:
            return LongContextOrder("first")  # pyrefly: ignore[bad-return]
        return self.components.order

    def params(self) -> dict[str, Any]:
        after = bool(self.components.retriever.reorder_after_cut)
        own = {} if after or self._order.by_rank else {"order": identity(self._order)}
        return {"n_grid": list(self.budget.grid), "reorder_after_cut": after, **own}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        texts = texts_of_ranking(self.components)
        hits, chunks = reads[texts[0]], retrieved_chunks(reads) if "chunks" in texts else None
        qids = reads["topics"]["qid"].tolist()
        layouts, prefixes = build_contexts(hits, chunks, tools.tokenizer, self.budget.grid, qids, self._order)
        return {"layouts": layouts, "prefixes": prefixes}


class Cut(Stage):
    """C_N of every topic at this job's n_tokens."""

    name = "contexts"
    reads = (Read("layouts"), Read("prefixes"))
    makes = ("contexts",)
    stored = False

    def make(self, reads: Reads, tools: Tools) -> Frames:
        return {"contexts": contexts_at(reads["layouts"], reads["prefixes"], self.budget.n_tokens)}
