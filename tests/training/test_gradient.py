"""The training loop on toy objectives whose course is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse

from snuh.encoder import Encoder, Layer
from snuh.progress import Progress
from snuh.training.gradient import DivergedError, TrainingPlan, clip_gradients, train
from snuh.training.spectral import fit_lsa
from snuh.training.validation_score import HeldOutScore
from tests.methods.test_contract import planted_topics

TERMS, BITS = 300, 8


class Course:
    """An objective that walks through a given list of encoders, one an epoch, whatever its gradient."""

    steps = 1

    def __init__(
        self, encoders: list[Encoder], broken: set[int] = frozenset(), start: Encoder | None = None
    ) -> None:
        self.encoders, self.broken, self.start = encoders, broken, start
        self.parameters = [torch.ones(3, requires_grad=True)]
        self.epoch = self.calls = 0
        self.rates: list[float] = []

    def batches(self, rng: np.random.Generator, *, epoch: int) -> Iterator[int]:
        self.epoch = epoch
        yield 0

    def loss(self, batch: int, *, epoch: float) -> Mapping[str, torch.Tensor]:
        self.calls += 1
        value = self.parameters[0].square().sum()
        return {"toy": value * float("nan") if self.calls in self.broken else value}

    def decoder(self) -> None:
        return None

    def encoder(self) -> Encoder:
        return self.start if self.start and not self.calls else self.encoders[self.epoch]


def rows() -> sparse.csr_matrix:
    return planted_topics(1)[0]


def topic_encoder(quality: float) -> Encoder:
    """Bits that tell the planted topics apart, with noise of weight 1 - quality."""
    rng = np.random.default_rng(0)
    topics = np.zeros((TERMS, BITS))
    for topic in range(5):
        topics[topic * 30 : topic * 30 + 30] = rng.choice([-1, 1], BITS)
    weight = quality * topics + (1 - quality) * rng.standard_normal((TERMS, BITS))
    return Encoder((Layer(weight, np.zeros(BITS)),), np.zeros(BITS))


def dead_encoder() -> Encoder:
    return Encoder((Layer(np.zeros((TERMS, BITS)), np.zeros(BITS)),), np.full(BITS, 0.5))


def score() -> HeldOutScore:
    X = rows()
    return HeldOutScore(X, X[:100], fit_lsa(X, dims=16, seed=0), rng=np.random.default_rng(0))


def plan(epochs: int, patience: int) -> TrainingPlan:
    return TrainingPlan(epochs=epochs, patience=patience, learning_rate=0.1, decay=True, clip=1.0)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_the_score_rises_with_the_quality_of_the_codes() -> None:
    held = score()
    values = [held(topic_encoder(quality)).value for quality in (0.0, 0.3, 1.0)]
    assert values == sorted(values)
    assert values[2] > values[0] + 0.1


def test_the_best_epoch_is_kept_and_patience_ends_training() -> None:
    qualities = [0.05, 0.6, 0.2, 0.15, 0.1, 0.05, 0.0]
    course = Course([topic_encoder(quality) for quality in qualities])
    result = train(course, plan(7, 3), score=score(), rng=rng())
    assert result.best_epoch == 2
    assert result.stopped == "patience"
    assert len(result.history) == 5
    assert result.encoder is course.encoders[1]


def test_training_is_not_ended_by_a_score_that_falls_before_it_rises() -> None:
    qualities = [0.3, 0.2, 0.15, 0.1, 0.05, 0.6, 0.5, 0.9, 0.4, 0.4, 0.4, 0.4]
    result = train(Course([topic_encoder(one) for one in qualities]), plan(12, 2), score=score(), rng=rng())
    assert (result.best_epoch, result.stopped, len(result.history)) == (8, "patience", 10)


def test_epochs_of_dead_codes_never_count_towards_stopping() -> None:
    encoders = [dead_encoder()] * 6 + [topic_encoder(0.2), topic_encoder(0.9)]
    result = train(Course(encoders), plan(8, 1), score=score(), rng=rng())
    assert result.best_epoch == 8
    assert result.score.alive
    assert [report.alive for report in result.history] == [False] * 6 + [True] * 2


def test_living_codes_beat_dead_ones_whatever_the_score() -> None:
    encoders = [topic_encoder(0.0), dead_encoder(), dead_encoder()]
    result = train(Course(encoders), plan(3, 9), score=score(), rng=rng())
    assert result.best_epoch == 1


def test_codes_that_stay_dead_are_reported_as_dead() -> None:
    result = train(Course([dead_encoder()] * 3), plan(3, 1), score=score(), rng=rng())
    assert not result.score.alive
    assert result.stopped == "epochs"


def test_codes_judged_worse_than_those_training_started_from_are_never_returned() -> None:
    start, encoders = topic_encoder(0.6), [topic_encoder(quality) for quality in (0.3, 0.2, 0.1, 0.0)]
    for score_start, best in ((True, 0), (False, 1)):
        chosen = replace(plan(4, 2), score_start=score_start)
        result = train(Course(encoders, start=start), chosen, score=score(), rng=rng())
        assert result.best_epoch == best
        assert result.encoder is (start if score_start else encoders[0])
        assert len(result.history) == 2 + best  # patience counts from the best epoch


def test_a_start_that_training_improves_on_is_not_returned() -> None:
    chosen = replace(plan(2, 9), score_start=True)
    course = Course([topic_encoder(0.3), topic_encoder(0.9)], start=topic_encoder(0.2))
    result = train(course, chosen, score=score(), rng=rng())
    assert (result.best_epoch, result.encoder) == (2, course.encoders[1])


def test_an_epoch_as_good_as_the_start_is_returned_with_its_decoder() -> None:
    course = Course([topic_encoder(0.5)] * 2, start=topic_encoder(0.5))
    result = train(course, replace(plan(2, 9), score_start=True), score=score(), rng=rng())
    assert result.best_epoch == 1


def test_divergence_in_the_first_epoch_is_an_error_also_with_a_start() -> None:
    course = Course([topic_encoder(0.5)], broken=set(range(1, 99)), start=topic_encoder(0.5))
    with pytest.raises(DivergedError):
        train(course, replace(plan(1, 9), score_start=True), score=score(), rng=rng())


def test_a_loss_that_is_not_finite_starts_the_epoch_again() -> None:
    course = Course([topic_encoder(0.5)] * 3, broken={2})
    result = train(course, plan(3, 9), score=score(), rng=rng())
    assert len(result.history) == 3
    assert course.calls == 4
    assert torch.isfinite(course.parameters[0]).all()


def test_a_loss_that_is_never_finite_is_an_error_that_says_what_to_do() -> None:
    course = Course([topic_encoder(0.5)] * 3, broken=set(range(1, 99)))
    with pytest.raises(DivergedError, match=r"not finite in epoch 1.*smaller learning_rate"):
        train(course, plan(3, 9), score=score(), rng=rng())


def test_divergence_after_good_epochs_keeps_the_best_encoder() -> None:
    course = Course([topic_encoder(quality) for quality in (0.1, 0.6, 0.2)], broken=set(range(3, 99)))
    result = train(course, plan(3, 9), score=score(), rng=rng())
    assert result.stopped == "diverged"
    assert result.best_epoch == 2


def test_a_gradient_that_is_not_finite_never_reaches_the_parameters() -> None:
    class Infinite(Course):
        def loss(self, batch: int, *, epoch: float) -> Mapping[str, torch.Tensor]:
            self.calls += 1
            parameter = self.parameters[0]
            # The root has a finite value and an infinite slope at zero.
            value = (
                (parameter - parameter.detach()).abs().sqrt().sum() if self.calls == 2 else parameter.sum()
            )
            return {"toy": value}

    course = Infinite([topic_encoder(0.5)] * 3)
    result = train(course, plan(3, 9), score=score(), rng=rng())
    assert course.calls == 4
    assert len(result.history) == 3
    assert torch.isfinite(course.parameters[0]).all()


@pytest.mark.parametrize("size", [1e-3, 1.0, 50.0])
def test_gradients_are_clipped_as_by_torch(size: float) -> None:
    generator = torch.Generator().manual_seed(0)
    ours = [torch.zeros(shape, requires_grad=True) for shape in ((30, 7), (7,), (3,))]
    theirs = [torch.zeros_like(parameter, requires_grad=True) for parameter in ours]
    for own, other in zip(ours[:2], theirs[:2], strict=True):  # the last has no gradient
        own.grad = size * torch.randn(own.shape, generator=generator)
        other.grad = own.grad.clone()
    torch.testing.assert_close(clip_gradients(ours, 10.0), torch.nn.utils.clip_grad_norm_(theirs, 10.0))
    for own, other in zip(ours[:2], theirs[:2], strict=True):
        torch.testing.assert_close(own.grad, other.grad)


def test_a_restarted_epoch_begins_from_its_weights_with_half_the_learning_rate() -> None:
    """The first step of Adam moves every weight by the learning rate, whatever the gradient."""
    moved = {}
    for broken in (set(), {1}):
        course = Course([topic_encoder(0.5)], broken=broken)
        train(course, plan(1, 9), score=score(), rng=rng())
        moved[len(broken)] = 1.0 - course.parameters[0].detach()
    torch.testing.assert_close(moved[0], torch.full((3,), 0.1), rtol=1e-4, atol=0)
    torch.testing.assert_close(moved[1], moved[0] / 2, rtol=1e-4, atol=0)


def test_ctrl_c_keeps_the_best_encoder_so_far() -> None:
    course = Course([topic_encoder(quality) for quality in (0.2, 0.9, 0.3, 0.5)])

    def interrupt(progress: Progress) -> None:
        if progress.epoch is not None and progress.epoch.epoch == 3:
            raise KeyboardInterrupt

    result = train(course, plan(4, 9), score=score(), rng=rng(), on_progress=interrupt)
    assert result.stopped == "interrupted"
    assert result.best_epoch == 2


def test_ctrl_c_before_the_first_epoch_ends_is_passed_on() -> None:
    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(Course([topic_encoder(0.5)]), plan(1, 9), score=score(), rng=rng(), on_progress=interrupt)


def test_each_epoch_reports_the_named_parts_of_the_loss() -> None:
    reports: list[Progress] = []
    train(Course([topic_encoder(0.5)] * 2), plan(2, 9), score=score(), rng=rng(), on_progress=reports.append)
    epochs = [report.epoch for report in reports if report.epoch is not None]
    assert [epoch.epoch for epoch in epochs] == [1, 2]
    assert epochs[0].parts == {"toy": pytest.approx(3.0)}
    assert reports[-1].done == 1.0


def test_a_small_corpus_is_scored_on_what_it_trains_on() -> None:
    X = planted_topics(1, docs=50)[0]
    held = HeldOutScore(X, X, fit_lsa(X, dims=8, seed=0), rng=np.random.default_rng(0))
    assert held(topic_encoder(0.0)).value < held(topic_encoder(0.6)).value
