"""Where a server stands, by its address."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

_SECONDS = 2.0  # that a connection may take


def is_own(address: str) -> bool:
    """Whether the address is this machine's or a private network's."""
    return is_here(address) or _ip_is(_host(address), "is_private")


def is_here(address: str) -> bool:
    """Whether the address is this machine's."""
    host = _host(address)
    return host == "localhost" or host.endswith(".localhost") or _ip_is(host, "is_loopback")


def refuses(address: str) -> bool:
    """Whether the address is a port of this machine where nothing listens."""
    if not is_here(address):
        return False
    parts = urlsplit(address)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((_host(address), port), _SECONDS):
            return False
    except ConnectionRefusedError:
        return True
    except (OSError, ValueError):
        return False


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
