"""Central mechanisms of others side by side with ours: ``python -m benchmarks.peers`` (benchmarks/results/peers.md)."""
