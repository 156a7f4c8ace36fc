"""Where a server stands, by its address."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def is_own(address: str) -> bool:
    """Whether the address is this machine's or a private network's."""
    return is_here(address) or _ip_is(_host(address), "is_private")


def is_here(address: str) -> bool:
    """Whether the address is this machine's."""
    host = _host(address)
    return host == "localhost" or host.endswith(".localhost") or _ip_is(host, "is_loopback")


def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def _ip_is(host: str, kind: str) -> bool:
    try:
        return bool(getattr(ipaddress.ip_address(host), kind))
    except ValueError:
        return False
