"""A run over a network of Flower: a ``ServerApp`` and a ``ClientApp`` that carry the files of a run folder (extra ``flower``)."""
