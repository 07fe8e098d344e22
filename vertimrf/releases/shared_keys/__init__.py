"""The paper's own encoder and estimator, for reproduction and comparison."""
