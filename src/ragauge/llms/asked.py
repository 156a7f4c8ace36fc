"""One request to a chat model, and the request that follows a reply that cannot be read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from ragauge.contract.replies import Reply
from ragauge.llms.prompts import complained, echo_in
from ragauge.llms.replies import form_in, was_cut
from ragauge.store import canonical_json


@dataclass(frozen=True)
class Asked:
    """A request: the ledger's key of its reply, what is sent as the ledger keeps it, the prompt and the options.

    cuts: places of the prompt up to which others of its row begin alike, ascending; kept: those up to which Anthropic's
    server is asked to keep it.
    """

    key: str
    request: str
    prompt: str
    options: Mapping[str, Any]
    cuts: tuple[int, ...] = ()
    kept: frozenset[int] = frozenset()

    def content(self) -> str | list[dict[str, Any]]:
        """The message: the prompt, or its parts between the cuts, with Anthropic's breakpoints."""
        if not self.cuts:
            return self.prompt
        places = sorted({0, *self.cuts, len(self.prompt)})
        marks = {end: {"cache_control": {"type": "ephemeral"}} for end in self.kept}
        return [
            {"type": "text", "text": self.prompt[begin:end], **marks.get(end, {})} for begin, end in pairwise(places)
        ]

    def after(self, reply: Reply, limit: tuple[str, int] | None) -> Asked:
        """The request that is sent after an unreadable reply to this one; its reply has the same key.

        limit: name and number of the most completion tokens. A reply that they cut is asked for with twice as many. For
        any other text the prompt says at its end what was wrong. A request without a text is sent as it was.
        """
        if reply.text is None and not was_cut(reply):
            return self
        if was_cut(reply) and limit is not None:
            name, most = limit
            return self.sent_as(self.prompt, {**self.options, name: 2 * most})
        echoes = echo_in(reply.text or "", self.prompt)
        why = "it is too long" if was_cut(reply) else "it repeats the prompt" if echoes else ""
        return self.sent_as(complained(self.prompt, why, form_in(self.prompt)), self.options)

    def sent_as(self, prompt: str, options: Mapping[str, Any]) -> Asked:
        """The request with another prompt and other options, under the same key."""
        request = (
            json.loads(self.request) | {"messages": [["human", prompt]]} | ({"options": options} if options else {})
        )
        return replace(self, request=canonical_json(request), prompt=prompt, options=options)
