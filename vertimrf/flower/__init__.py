"""Runs over a network of Flower: two apps that carry the files of run folders."""
