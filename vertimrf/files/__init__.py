"""Files: atomic writes, one binary container, sealed files, canonical JSON and its digests."""
