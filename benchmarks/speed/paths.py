"""What the benchmarks call of the package, in one place."""

# ruff: noqa: F401
from vertimrf import Sketch, synthesize
from vertimrf.cli.bench import SECRET, measure_machine, table, work_of
from vertimrf.kernels import warmup
from vertimrf.kernels.contingency import all_pairs
from vertimrf.kernels.digest import digest_integers, digest_strings
from vertimrf.kernels.geometric import encode_rows, hazards
from vertimrf.kernels.jit import threads
from vertimrf.model.fit import fit
from vertimrf.model.junction_tree import junction_tree
from vertimrf.model.measurement import Measurement
from vertimrf.model.propagation import Propagation
from vertimrf.model.sample import sample
from vertimrf.releases.count_sketches.encoding import CountSketchEncoder
from vertimrf.releases.count_sketches.parameters import CountSketches
from vertimrf.releases.scheduled_pairs.encoding import SketchEncoder
from vertimrf.releases.scheduled_pairs.parameters import ScheduledPair, ScheduledPairs
from vertimrf.releases.shared_keys.encoding import SharedKeyEncoder
from vertimrf.releases.shared_keys.parameters import SharedKeys
from vertimrf.sketch import CEILING
