"""VertiGAN: a GAN over vertically partitioned data (Jiang et al., 2023), as the VertiMRF paper describes it (section 6).

The server trains one generator with a trunk and one head per party; every party trains a discriminator of its own columns by
DP-SGD. In each step a party samples its records (Poisson), clips the gradient of each, adds Gaussian noise, and subtracts it from
that on generated rows, which no record touches. These are clipped in the same way: were they not, the gradient would not vanish
where both are alike, and the discriminator would lead the generator elsewhere. The party then sends the gradient of the
generator's loss by its part of the generated batch; the server carries all parties' through the generator. What a party sends
depends on records through the noisy discriminator only. No discriminator sees columns of two parties: how these go together in
the generated rows comes from the shared trunk, and not from the records.

A record takes part at every party: m parties of T steps each compose as m * T steps of the sampled Gaussian mechanism, and the
noise is calibrated for that by opacus' RDP accountant (add/remove one record). Needs the extra `vertigan` (torch, opacus).
"""

from __future__ import annotations

import copy
import math
import os
import time
from dataclasses import dataclass

import numpy as np

from ..datasets import Codes

try:
    import torch
    from opacus import GradSampleModule
    from opacus.accountants import RDPAccountant
    from opacus.accountants.utils import get_noise_multiplier
    from torch import nn
except ImportError as error:
    raise ImportError("VertiGAN needs torch and opacus: pip install -e '.[vertigan]'") from error

FLOAT_BYTES = 4


@dataclass(frozen=True)
class Training:
    """Sizes and steps.

    Attributes:
        steps: of the generator, and of every discriminator.
        batch: expected records of a discriminator step (all, where there are fewer), and generated rows.
        latent: dimensions of the generator's noise.
        hidden: width of the trunk, and of the discriminators.
        clip: limit on the norm of a row's gradient.
        decay: of the discriminators' parameters. It bounds them, in place of a limit on each weight (Wasserstein GAN), and lets a
            discriminator forget: without it, the two sides circle each other rather than settle.
        critic_rate: of the discriminators' learning: plain steps, for Adam would scale noise up to the size of a signal.
        rate: of the generator's learning (Adam).
        temperature: of the Gumbel softmax whose gradient stands in for that of drawing a code.
        average: share that the averaged generator keeps in a step; it draws the rows.
    """

    steps: int = 500
    batch: int = 1024
    latent: int = 32
    hidden: int = 64
    clip: float = 1.0
    decay: float = 0.1
    critic_rate: float = 1.0
    rate: float = 3e-3
    temperature: float = 1.0
    average: float = 0.98


@dataclass(frozen=True, eq=False)
class Made:
    """Synthetic rows [shape=(d, n), uint16], the privacy spent, and the cost of each role."""

    codes: Codes
    epsilon: float
    sigma: float
    message_bytes: tuple[int, ...]
    party_seconds: float
    server_seconds: float


class Generator(nn.Module):
    """Noise to logits of each party's one-hot columns."""

    def __init__(self, training, widths):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(training.latent, training.hidden),
            nn.ReLU(),
            nn.Linear(training.hidden, training.hidden),
            nn.ReLU(),
        )
        self.heads = nn.ModuleList(nn.Linear(training.hidden, width) for width in widths)

    def forward(self, noise):
        common = self.trunk(noise)
        return [head(common) for head in self.heads]


class Party:
    """One party's columns and discriminator."""

    def __init__(self, codes, sizes, training, sigma):
        self.sizes = list(sizes)
        self.training = training
        self.sigma = sigma
        self.codes = torch.from_numpy(codes.astype(np.int64))
        width = sum(sizes)
        # An output bias would cancel in the difference of the two sides, but take up part of every row's clipped gradient.
        output = nn.Linear(training.hidden, 1, bias=False)
        network = nn.Sequential(nn.Linear(width, training.hidden), nn.LeakyReLU(0.2), output)
        self.discriminator = GradSampleModule(network)
        self.optimizer = torch.optim.SGD(
            self.discriminator.parameters(), lr=training.critic_rate, weight_decay=training.decay
        )
        # Which records take part, and the noise on them, come from the operating system: a seed must not repeat them.
        self.private = torch.Generator().manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)
        self.seconds = 0.0

    def learn(self, fake):
        """One step that lowers the output on generated rows and raises that on sampled records, by DP-SGD."""
        start = time.perf_counter()
        n, training = self.codes.shape[1], self.training
        expected = min(training.batch, n)
        drawn = torch.nonzero(torch.rand(n, generator=self.private) < expected / n).squeeze(1)
        pairs = zip(self.clipped_sums(drawn), self.row_sums(fake), strict=True)
        for parameter, (real, made) in zip(self.discriminator.parameters(), pairs, strict=True):
            noise = torch.normal(
                0.0, self.sigma * training.clip, real.shape, generator=self.private
            )
            parameter.grad = made / len(fake) - (real + noise) / expected
        self.optimizer.step()
        self.seconds += time.perf_counter() - start

    def clipped_sums(self, drawn):
        """Sum over the drawn records of the clipped gradients of the output, one tensor per parameter."""
        columns = zip(self.codes, self.sizes, strict=True)
        return self.row_sums(
            torch.cat(
                [nn.functional.one_hot(row[drawn], size).float() for row, size in columns], dim=1
            )
        )

    def row_sums(self, rows):
        """The same over rows of one-hot columns, real or generated."""
        parameters = list(self.discriminator.parameters())
        if not len(rows):
            return [torch.zeros_like(parameter) for parameter in parameters]
        self.discriminator.zero_grad()
        # grad_sample is each row's own gradient under this sum.
        self.discriminator(rows).sum().backward()
        gradients = [
            parameter.grad_sample.detach() * self._loss_scale(len(rows)) for parameter in parameters
        ]
        norms = torch.sqrt(sum((grad.flatten(1) ** 2).sum(1) for grad in gradients))
        factors = (self.training.clip / norms.clamp(min=1e-12)).clamp(max=1.0)
        return [torch.einsum("i,i...->...", factors, grad) for grad in gradients]

    def _loss_scale(self, rows):
        """What undoes the wrapper's scaling, which takes losses for means unless told otherwise."""
        return 1.0 / rows if self.discriminator.loss_reduction == "mean" else 1.0

    def gradient(self, fake):
        """Gradient of the generator's loss by this party's generated columns."""
        start = time.perf_counter()
        rows = fake.detach().requires_grad_(True)
        self.discriminator.disable_hooks()
        (out,) = torch.autograd.grad(-self.discriminator(rows).mean(), rows)
        self.discriminator.enable_hooks()
        self.seconds += time.perf_counter() - start
        return out


def one_hot(logits, sizes, temperature):
    """One-hot columns, with the gradient of nearly one-hot ones.

    Records are one-hot: a discriminator that saw softer columns would tell them by that, and not by their codes.
    """
    parts = torch.split(logits, list(sizes), dim=1)
    return torch.cat(
        [nn.functional.gumbel_softmax(part, tau=temperature, hard=True, dim=1) for part in parts],
        dim=1,
    )


def train(
    codes,
    sizes,
    split,
    epsilon,
    delta,
    seed,
    training=None,
):
    """Train, and draw as many rows as there are records.

    Args:
        codes: the joined table [shape=(d, n), uint16]; each party is given its own rows of it.
        sizes: codes per attribute.
        split: attributes of each party.
        epsilon, delta: privacy target of the whole run.
        seed: of the networks and of the generator's noise.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # for matrices this small, more threads cost more than they do
    try:
        return _train(codes, sizes, split, epsilon, delta, seed, training or Training())
    finally:
        torch.set_num_threads(before)


def _train(
    codes,
    sizes,
    split,
    epsilon,
    delta,
    seed,
    training,
):
    start = time.perf_counter()
    torch.manual_seed(seed)
    n = codes.shape[1]
    rate, composed = min(training.batch / n, 1.0), training.steps * len(split)
    sigma = get_noise_multiplier(
        target_epsilon=epsilon,
        target_delta=delta,
        sample_rate=rate,
        steps=composed,
        accountant="rdp",
        epsilon_tolerance=epsilon / 1000,
    )
    accountant = RDPAccountant()
    accountant.history = [(sigma, rate, composed)]
    party_sizes = [[sizes[a] for a in columns] for columns in split]
    parties = [
        Party(codes[list(columns)], widths, training, sigma)
        for columns, widths in zip(split, party_sizes, strict=True)
    ]
    generator = Generator(training, [sum(widths) for widths in party_sizes])
    optimizer = torch.optim.Adam(generator.parameters(), lr=training.rate, betas=(0.5, 0.999))
    averaged = copy.deepcopy(generator)

    def generate(rows):
        logits = generator(torch.randn(rows, training.latent))
        return [
            one_hot(part, widths, training.temperature)
            for part, widths in zip(logits, party_sizes, strict=True)
        ]

    for step in range(training.steps):
        with torch.no_grad():
            shown = generate(training.batch)
        for party, fake in zip(parties, shown, strict=True):
            party.learn(fake)
        fakes = generate(training.batch)
        gradients = [party.gradient(fake) for party, fake in zip(parties, fakes, strict=True)]
        optimizer.zero_grad()
        torch.autograd.backward(fakes, gradients)
        optimizer.step()
        with torch.no_grad():
            # Early on a plain mean, which the first, untrained parameters soon leave.
            share = max(1 - training.average, 1 / (1 + step))
            for mean, parameter in zip(averaged.parameters(), generator.parameters(), strict=True):
                mean.lerp_(parameter, share)

    made = np.empty(codes.shape, np.uint16)
    with torch.no_grad():
        for columns, widths, logits in zip(
            split, party_sizes, averaged(torch.randn(n, training.latent)), strict=True
        ):
            for attribute, part in zip(columns, torch.split(logits, widths, dim=1), strict=True):
                made[attribute] = (
                    torch.distributions.Categorical(logits=part).sample().numpy().astype(np.uint16)
                )
    spent = accountant.get_epsilon(delta)
    if not (math.isfinite(spent) and spent <= epsilon * 1.001):
        raise ArithmeticError(f"VertiGAN's noise spends epsilon {spent:.4f}, not {epsilon}.")
    sent = tuple(
        training.steps * training.batch * sum(widths) * FLOAT_BYTES for widths in party_sizes
    )
    at_parties = sum(party.seconds for party in parties)
    return Made(made, spent, sigma, sent, at_parties, time.perf_counter() - start - at_parties)
