"""mbi, the library of the field, told the same tables, measurements and factors: in float64, results read back."""

import numpy as np

from benchmarks.peers.mechanisms import double_precision_mbi


def named(attributes):
    return tuple(map(str, attributes))


class Peer:
    """What it is asked."""

    def __init__(self):
        self.mbi = double_precision_mbi()

    def domain(self, sizes):
        return self.mbi.Domain(named(range(len(sizes))), sizes)

    def fit(self, problem, iterations, warm=None):
        measurements = [
            self.mbi.LinearMeasurement(m.counts.ravel(), named(m.attributes), float(m.sigma))
            for m in problem.measurements
        ]
        model = self.mbi.estimation.MirrorDescent().estimate(
            self.domain(problem.sizes),
            measurements,
            known_total=problem.total,
            iters=iterations,
            warm_start=warm,
        )
        self.marginal(model, (0,))
        return model

    def marginal(self, model, attributes):
        return np.asarray(model.project(named(attributes)).datavector(flatten=False))

    def loss(self, model, problem):
        return sum(
            0.5 * float((((self.marginal(model, m.attributes) - m.counts) / m.sigma) ** 2).sum())
            for m in problem.measurements
        )

    def rows(self, model, rows):
        data = model.synthetic_data(rows=rows).to_dict()
        return np.stack([np.asarray(data[name]) for name in model.domain.attributes])

    def counted(self, codes, sizes, pairs):
        domain = self.domain(sizes)
        data = self.mbi.Dataset(dict(zip(domain.attributes, codes, strict=True)), domain)
        return [self.marginal(data, pair) for pair in pairs]

    def _vector(self, sizes, attributes, tables):
        domain, factors = self.domain(sizes), {}
        for names, table in zip(map(named, attributes), tables, strict=True):
            factor = self.mbi.Factor(domain.project(names), np.asarray(table))
            factors[names] = factors[names] + factor if names in factors else factor
        return self.mbi.CliqueVector(domain, tuple(factors), factors)

    def _potentials(self, ours):
        attributes = [f.attributes for f in ours.factors]
        return attributes, self._vector(ours.sizes, attributes, [f.logs for f in ours.factors])

    def calibrated(self, ours):
        """Marginals from our factors, by mbi's message passing."""
        _, potentials = self._potentials(ours)
        return self.mbi.marginal_oracles.message_passing_stable(potentials, ours.total)

    def model(self, ours):
        """Our factors as mbi's model, with our marginals of the same attributes, each once: mbi's own calibration compiles for minutes."""
        attributes, potentials = self._potentials(ours)
        marginals = self._vector(ours.sizes, attributes, ours.marginals(attributes))
        return self.mbi.MarkovRandomField(
            potentials=potentials, marginals=marginals, total=ours.total
        )
