"""Statistics on frames that locate lost evidence and explain failed topics."""
