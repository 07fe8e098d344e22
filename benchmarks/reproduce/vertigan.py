"""VertiGAN: a GAN over vertically partitioned data (Jiang et al., 2023), as the VertiMRF paper describes it (section 6).

The server trains one generator with a trunk and one head per party; every party trains a discriminator of its own columns by
DP-SGD. In each step a party samples its records (Poisson), clips the gradient of each, adds Gaussian noise, and adds the gradient
on generated rows, which no record touches. It then sends the gradient of the generator's loss by its part of the generated batch;
the server carries all parties' through the generator. What a party sends depends on records through the noisy discriminator only.

A record takes part at every party: m parties of T steps each compose as m * T steps of the sampled Gaussian mechanism, and the
noise is calibrated for that by opacus' RDP accountant (add/remove one record). Needs the extra `vertigan` (torch, opacus).
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .data import Codes

try:
    import torch
    from opacus import GradSampleModule
    from opacus.accountants import RDPAccountant
    from opacus.accountants.utils import get_noise_multiplier
    from torch import nn
except ImportError as error:
    raise ImportError("VertiGAN needs torch and opacus: pip install -e '.[vertigan]'") from error

__all__ = ["Made", "Training", "train"]

FLOAT_BYTES = 4


@dataclass(frozen=True)
class Training:
    """Sizes and steps.

    Attributes:
        steps: of the generator.
        batch: expected records of a discriminator step, and generated rows.
        latent: dimensions of the generator's noise.
        hidden: width of the trunk, and of the discriminators.
        critic: discriminator steps per generator step.
        clip: limit on the norm of a record's gradient.
        weight: limit on the discriminators' parameters (Wasserstein GAN).
        rate: of learning (Adam).
        temperature: of the Gumbel softmax that makes one-hot columns differentiable.
    """

    steps: int = 1000
    batch: int = 256
    latent: int = 64
    hidden: int = 128
    critic: int = 2
    clip: float = 1.0
    weight: float = 0.05
    rate: float = 1e-3
    temperature: float = 1.0


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

    def __init__(self, training: Training, widths: Sequence[int]) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(training.latent, training.hidden),
            nn.ReLU(),
            nn.Linear(training.hidden, training.hidden),
            nn.ReLU(),
        )
        self.heads = nn.ModuleList(nn.Linear(training.hidden, width) for width in widths)

    def forward(self, noise: torch.Tensor) -> list[torch.Tensor]:
        common = self.trunk(noise)
        return [head(common) for head in self.heads]


class Party:
    """One party's columns and discriminator."""

    def __init__(self, codes: Codes, sizes: Sequence[int], training: Training, sigma: float) -> None:
        self.sizes = list(sizes)
        self.training = training
        self.sigma = sigma
        self.codes = torch.from_numpy(codes.astype(np.int64))
        width = sum(sizes)
        network = nn.Sequential(nn.Linear(width, training.hidden), nn.LeakyReLU(0.2), nn.Linear(training.hidden, 1))
        self.discriminator: Any = GradSampleModule(network)
        self.optimizer = torch.optim.Adam(self.discriminator.parameters(), lr=training.rate, betas=(0.5, 0.9))
        # Which records take part, and the noise on them, come from the operating system: a seed must not repeat them.
        self.private = torch.Generator().manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)
        self.seconds = 0.0

    def learn(self, fake: torch.Tensor) -> None:
        """One DP-SGD step on sampled records, and a plain one on generated rows."""
        start = time.perf_counter()
        n, training = self.codes.shape[1], self.training
        drawn = torch.nonzero(torch.rand(n, generator=self.private) < training.batch / n).squeeze(1)
        sums = self.clipped_sums(drawn)
        self.optimizer.zero_grad()
        self.discriminator.zero_grad()
        self.discriminator.disable_hooks()
        self.discriminator(fake).mean().backward()
        self.discriminator.enable_hooks()
        for parameter, total in zip(self.discriminator.parameters(), sums, strict=True):
            noise = torch.normal(0.0, self.sigma * training.clip, total.shape, generator=self.private)
            parameter.grad = parameter.grad + (total + noise) / training.batch
        self.optimizer.step()
        with torch.no_grad():
            for parameter in self.discriminator.parameters():
                parameter.clamp_(-training.weight, training.weight)
        self.seconds += time.perf_counter() - start

    def clipped_sums(self, drawn: torch.Tensor) -> list[torch.Tensor]:
        """Sum over the drawn records of the clipped gradients of the loss on real rows, one tensor per parameter."""
        parameters = list(self.discriminator.parameters())
        if not len(drawn):
            return [torch.zeros_like(parameter) for parameter in parameters]
        self.discriminator.zero_grad()
        real = torch.cat(
            [nn.functional.one_hot(row[drawn], size).float() for row, size in zip(self.codes, self.sizes, strict=True)], dim=1
        )
        # grad_sample is each record's own gradient under this sum.
        (-self.discriminator(real)).sum().backward()
        own = [parameter.grad_sample.detach() * self._loss_scale(len(drawn)) for parameter in parameters]
        norms = torch.sqrt(sum((grad.flatten(1) ** 2).sum(1) for grad in own))
        factors = (self.training.clip / norms.clamp(min=1e-12)).clamp(max=1.0)
        return [torch.einsum("i,i...->...", factors, grad) for grad in own]

    def _loss_scale(self, records: int) -> float:
        """What undoes the wrapper's scaling, which takes losses for means unless told otherwise."""
        return 1.0 / records if self.discriminator.loss_reduction == "mean" else 1.0

    def gradient(self, fake: torch.Tensor) -> torch.Tensor:
        """Gradient of the generator's loss by this party's generated columns."""
        start = time.perf_counter()
        rows = fake.detach().requires_grad_(True)
        self.discriminator.disable_hooks()
        (out,) = torch.autograd.grad(-self.discriminator(rows).mean(), rows)
        self.discriminator.enable_hooks()
        self.seconds += time.perf_counter() - start
        return out


def one_hot(logits: torch.Tensor, sizes: Sequence[int], temperature: float) -> torch.Tensor:
    """Nearly one-hot columns, differentiable."""
    parts = torch.split(logits, list(sizes), dim=1)
    return torch.cat([nn.functional.gumbel_softmax(part, tau=temperature, dim=1) for part in parts], dim=1)


def train(
    codes: Codes,
    sizes: Sequence[int],
    split: Sequence[Sequence[int]],
    epsilon: float,
    delta: float,
    seed: int,
    training: Training | None = None,
) -> Made:
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
    codes: Codes,
    sizes: Sequence[int],
    split: Sequence[Sequence[int]],
    epsilon: float,
    delta: float,
    seed: int,
    training: Training,
) -> Made:
    start = time.perf_counter()
    torch.manual_seed(seed)
    n = codes.shape[1]
    rate, composed = min(training.batch / n, 1.0), training.steps * training.critic * len(split)
    sigma = get_noise_multiplier(
        target_epsilon=epsilon, target_delta=delta, sample_rate=rate, steps=composed, accountant="rdp",
        epsilon_tolerance=epsilon / 1000,
    )  # fmt: skip
    accountant = RDPAccountant()
    accountant.history = [(sigma, rate, composed)]
    held = [[sizes[a] for a in own] for own in split]
    parties = [Party(codes[list(own)], mine, training, sigma) for own, mine in zip(split, held, strict=True)]
    generator = Generator(training, [sum(mine) for mine in held])
    optimizer = torch.optim.Adam(generator.parameters(), lr=training.rate, betas=(0.5, 0.9))

    def generate(rows: int) -> list[torch.Tensor]:
        logits = generator(torch.randn(rows, training.latent))
        return [one_hot(part, mine, training.temperature) for part, mine in zip(logits, held, strict=True)]

    for _ in range(training.steps):
        for _ in range(training.critic):
            with torch.no_grad():
                shown = generate(training.batch)
            for party, fake in zip(parties, shown, strict=True):
                party.learn(fake)
        fakes = generate(training.batch)
        gradients = [party.gradient(fake) for party, fake in zip(parties, fakes, strict=True)]
        optimizer.zero_grad()
        torch.autograd.backward(fakes, gradients)
        optimizer.step()

    made = np.empty(codes.shape, np.uint16)
    with torch.no_grad():
        for own, mine, logits in zip(split, held, generator(torch.randn(n, training.latent)), strict=True):
            for attribute, part in zip(own, torch.split(logits, mine, dim=1), strict=True):
                made[attribute] = torch.distributions.Categorical(logits=part).sample().numpy().astype(np.uint16)
    spent = accountant.get_epsilon(delta)
    if not (math.isfinite(spent) and spent <= epsilon * 1.001):
        raise ArithmeticError(f"VertiGAN's noise spends epsilon {spent:.4f}, not {epsilon}.")
    sent = tuple(training.steps * training.batch * sum(mine) * FLOAT_BYTES for mine in held)
    at_parties = sum(party.seconds for party in parties)
    return Made(made, spent, sigma, sent, at_parties, time.perf_counter() - start - at_parties)
