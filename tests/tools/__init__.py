"""What tests the tests and what they play with: mutants, damaged files, kills, a federation on one machine."""
