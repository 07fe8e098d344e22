"""The paper's own encoders, estimators and reductions, for reproduction and comparison."""
