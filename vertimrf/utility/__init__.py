"""What a synthetic table is good for, by the measures that people judge such tables by: exact figures, so for one's own eyes."""
