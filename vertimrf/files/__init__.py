"""Files: whole or not there, one binary container, canonical JSON and its digests."""
