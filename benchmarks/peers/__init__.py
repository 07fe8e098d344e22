"""Central mechanisms of others side by side with ours: ``python -m benchmarks.peers`` (docs/peers.md)."""
