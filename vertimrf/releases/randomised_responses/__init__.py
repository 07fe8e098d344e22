"""The paper's baseline of randomised responses, for comparison."""
