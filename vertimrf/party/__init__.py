"""What runs at a party, and may see its table and its secret."""
