"""Runs a central mechanism of smartnoise-synth; a script for the interpreter that has it, never imported by the rest.

    python peer.py mst|aim IN.npz OUT.npy

IN holds ``codes`` [shape=(d, n), uint16], ``epsilon`` and ``delta``; OUT gets as many synthetic rows, in the same shape.
"""

import sys

import numpy as np
import pandas as pd
from snsynth import Synthesizer

name, source, target = sys.argv[1:]
given = np.load(source)
codes = given["codes"]
frame = pd.DataFrame({f"x{i}": column.astype(int) for i, column in enumerate(codes)})
# AIM is given the workload that is measured: all three-way marginals.
options = {"degree": 3} if name == "aim" else {}
mechanism = Synthesizer.create(name, epsilon=float(given["epsilon"]), delta=float(given["delta"]), **options)
mechanism.fit(frame, categorical_columns=list(frame.columns), preprocessor_eps=0.0)
made = mechanism.sample(codes.shape[1])
np.save(target, made[list(frame.columns)].to_numpy().T.astype(np.uint16))
