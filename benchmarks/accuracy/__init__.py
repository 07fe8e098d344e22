"""How close synthetic tables come to real ones, and what their errors say: a script for each question."""
