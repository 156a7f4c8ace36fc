"""A client of `POST /embeddings` in OpenAI's protocol, as OpenAI, Ollama, TEI, vLLM and llama.cpp speak it.

The client asks for vectors as base64, as OpenAI's own client does: numbers in JSON take long to read. It reads both.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
import numpy as np

from ragauge.contract.errors import DataError
from ragauge.contract.redact import redacted_beginning
from ragauge.contract.usage import Usage
from ragauge.contract.visible import visible
from ragauge.llms.failures import Stop, told_in
from ragauge.llms.patience import is_loading
from ragauge.llms.replies import message_of
from ragauge.llms.usage import of_openai

_OPENAI = "https://api.openai.com/v1"
_CONNECTING = 10.0  # seconds
_SHOWN, _BEGINNING = 300, 40  # characters of a server's message, and of a text
_OWN_FAULTS = (400, 413, 422)
_OF_LENGTH = re.compile(r"token|length|context|too (large|long)|batch size|exceed|longer", re.I)
_TOO_LARGE = re.compile("too large to process")  # llama.cpp's status is 500 for a text beyond its batch


class Refused(Exception):
    """A response with an error's status, for `ragauge.llms.failures`."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(f"status {response.status_code}")
        self.response = response


class Embeddings:
    """Asks one model at one address. dimensions: numbers of a vector, None for as many as the model has."""

    def __init__(
        self, model: str, base_url: str | None = None, dimensions: int | None = None, api_key: str | None = None
    ) -> None:
        self._body = {"model": model, "encoding_format": "base64"} | ({"dimensions": dimensions} if dimensions else {})
        self._dimensions = dimensions
        self.base_url = (base_url or _OPENAI).rstrip("/")
        self._headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {api_key}"} if api_key else {}
        )
        # `ragauge.llms.clients.guard` looks for the client here.
        self._client = httpx.AsyncClient(timeout=httpx.Timeout(None, connect=_CONNECTING))
        self.root_async_client = self

    async def ainvoke(self, texts: Sequence[str], **options: Any) -> tuple[np.ndarray, Usage]:
        """The texts' vectors, float32 [len(texts), dimensions], rows of length 1, and the tokens of the request.

        Stop, with a DataError, where the server refuses these texts or its reply holds no vectors of them. Refused for
        any other refusal. ValueError for a reply that is no JSON, and httpx's errors where none comes.
        """
        # A server refuses an empty text, and a lone surrogate has no UTF-8.
        sent = [text.encode("utf-8", "replace").decode() or " " for text in texts]
        response = await self._client.post(
            f"{self.base_url}/embeddings", content=json.dumps({**self._body, "input": sent}), headers=self._headers
        )
        if response.status_code >= 400:
            error = Refused(response)
            told = told_in(error).strip()
            own_fault = response.status_code in _OWN_FAULTS and not is_loading(response.status_code, told)
            if own_fault or _TOO_LARGE.search(told):
                status, remedy = response.status_code, f". {_REMEDY}" if _OF_LENGTH.search(told) else ""
                raise self._stop(f"refuses {_in_words(texts)} with {status}: {_shown(told)}{remedy}")
            raise error
        body = json.loads(response.content)
        if not isinstance(body, Mapping) or not isinstance(body.get("data"), list):
            error_told = body.get("error") if isinstance(body, Mapping) else None
            raise ValueError(message_of(error_told) if error_told else "the reply holds no list of vectors")
        usage = of_openai(body)
        # LM Studio counts 0, and no request has so few.
        return self._vectors(body["data"], texts), Usage(usage.prompt_tokens or None, 0)

    def _vectors(self, data: list[Any], texts: Sequence[str]) -> np.ndarray:
        """The vectors in the order of the texts, which `index` tells where it is given."""
        if len(data) != len(texts):
            raise self._stop(f"gives {len(data):,} vectors for {len(texts):,} texts")
        indices = [entry.get("index") if isinstance(entry, Mapping) else None for entry in data]
        if indices != [None] * len(data) and sorted(map(str, indices)) != sorted(map(str, range(len(data)))):
            raise self._stop(f"gives vectors whose index is not 0 to {len(data) - 1}, each once")
        order = range(len(data)) if indices[0] is None else np.argsort([int(str(index)) for index in indices])
        try:
            rows = [_numbers(data[place]["embedding"]) for place in order]
        except (KeyError, TypeError, ValueError, binascii.Error):
            raise self._stop("gives a vector that is neither a list of numbers nor their base64") from None
        widths = {len(row) for row in rows}
        if len(widths) > 1 or 0 in widths:
            raise self._stop(f"gives vectors of {' and '.join(map(str, sorted(widths)))} numbers in one reply")
        if self._dimensions not in (None, *widths):
            raise self._stop(
                f"gives {widths.pop()} dimensions where embedder.dimensions={self._dimensions} asks for others; "
                "leave it out for a model that cannot shorten its vectors"
            )
        vectors = np.stack(rows)
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
        odd = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
        if len(odd):
            kind = "of zeros" if lengths[odd[0]] == 0 else "with numbers that are none (NaN or infinity)"
            raise self._stop(f"gives a vector {kind} for the text that begins {_beginning(texts[odd[0]])}")
        return (vectors / lengths[:, None]).astype(np.float32)

    def _stop(self, what: str) -> Stop:
        place = visible(redacted_beginning(self.base_url, _SHOWN), one_line=True)
        return Stop(DataError(f"embedder.model={self._body['model']}: the server at {place} {what}"))


_REMEDY = (
    "Make the chunks smaller (chunker=tokens chunker.size=200), send fewer texts at once (embedder.batch_size), or "
    "give the server a longer context (embedder.context of llama_cpp)"
)


def _numbers(embedding: Any) -> np.ndarray:
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
    return np.asarray([float(number) for number in embedding], dtype=np.float32)


def _in_words(texts: Sequence[str]) -> str:
    """The texts of a refused request, by the one that is most likely the cause."""
    longest = max(texts, key=len)
    about = f"{len(longest):,} characters, which begins {_beginning(longest)}"
    return f"a text of {about}," if len(texts) == 1 else f"{len(texts):,} texts, the longest of {about},"


def _beginning(text: str) -> str:
    return repr(visible(text[:_BEGINNING], one_line=True))


def _shown(told: str) -> str:
    return visible(redacted_beginning(told, _SHOWN), one_line=True).rstrip(".") or "without a reason"
