"""Count sketches: noisy counters under secret buckets and signs."""
