"""Figures measured by others or elsewhere; every table marks them as quoted."""

# 3-way TVD of central mechanisms with all data in one place, by (data, epsilon): MST of mbi 2.0; AIM ported to mbi 2.0 with a
# 3-way workload and all fits converged. Measured once, in an environment of their own, on these data sets.
MST = {
    ("nltcs", 0.2): 0.143,
    ("nltcs", 0.8): 0.145,
    ("nltcs", 3.2): 0.145,
    ("adult", 0.2): 0.095,
    ("adult", 0.8): 0.079,
    ("adult", 3.2): 0.076,
    ("br2000", 0.2): 0.069,
    ("br2000", 0.8): 0.057,
    ("br2000", 3.2): 0.055,
}
AIM = {
    ("nltcs", 0.2): 0.0147,
    ("nltcs", 0.8): 0.0057,
    ("nltcs", 3.2): 0.0030,
    ("adult", 0.2): 0.070,
    ("adult", 0.8): 0.042,
    ("adult", 3.2): 0.034,
    ("br2000", 0.2): 0.048,
    ("br2000", 0.8): 0.026,
    ("br2000", 3.2): 0.015,
}
# Google's dpsynth with all data in one place: SWIFT, and its MST. Measured elsewhere.
SWIFT = {("adult", 0.8): 0.0506, ("br2000", 0.8): 0.0285}
DPSYNTH_MST = {("adult", 0.8): 0.085, ("br2000", 0.8): 0.059}
# VertiMRF's own figures for two parties, read off its plots.
PAPER_TVD = {("nltcs", 0.8): "paper, two parties: 0.052–0.074"}
RESAMPLED = {"nltcs": 0.005, "adult": 0.019, "br2000": 0.014}

# VertiMRF, Table 2 (Adult): communication in the paper's "Mb", minutes per party, minutes at the server.
PAPER_COSTS = (
    ("VertiMRF-FM (t = 2000)", "15 Mb", "23.1 min", "67 min"),
    ("VertiMRF-FM (t = 2000, 40 threads)", "4.9 Mb", "4.1 min", "67 min"),
    ("VertiMRF-FM (t = 8000)", "22 Mb", "93 min", "67 min"),
    ("VertiMRF-FO", "18 Mb", "2.5 min", "67 min"),
    ("VertiGAN", "112 Mb", "8.3 min", "10 s"),
    ("Centralized", "–", "–", "16 min"),
)
# VertiMRF, Table 3 (NLTCS): 3-way TVD, mean and standard deviation of 5 runs, by split: FM, FO, VertiGAN.
PAPER_SPLITS = {
    "importance=0.1": ((0.0583, 0.005), (0.234, 0.023), (0.426, 0.027)),
    "importance=1": ((0.0667, 0.021), (0.249, 0.017), (0.430, 0.056)),
    "importance=10": ((0.0589, 0.006), (0.257, 0.019), (0.458, 0.081)),
    "importance=100": ((0.0648, 0.007), (0.266, 0.022), (0.465, 0.068)),
    "correlation=0": ((0.0735, 0.007), (0.261, 0.027), (0.436, 0.034)),
    "correlation=0.3": ((0.0524, 0.006), (0.296, 0.024), (0.416, 0.031)),
    "correlation=0.6": ((0.0684, 0.006), (0.272, 0.023), (0.438, 0.038)),
    "correlation=1": ((0.0678, 0.009), (0.281, 0.034), (0.401, 0.042)),
}
