"""The paper's own encoders and estimators, for reproduction and comparison."""
