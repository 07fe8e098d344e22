"""What ``tests/tools/fuzz.py`` is made of: sound files (seeds), ways to damage them (damage), and who reads them (readers)."""
