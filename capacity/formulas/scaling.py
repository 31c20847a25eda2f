"""Scaling laws: loss against parameters, tokens, compute and batch."""
from __future__ import annotations

from typing import Annotated, Any

from ..algebra import exp, log, sqrt
from ..grammar import formula
from ..units import Count, Flops, Share, Group, Index, Ratio, Unit


# 07
@formula(chapter="07-compute-loss-surface", source="hoffmann2022")
def loss_surface(params: Count, tokens: Count, irreducible: Ratio, size_coefficient: Ratio, data_coefficient: Ratio,
                 size_exponent: Ratio, data_exponent: Ratio) -> Ratio:
    """Loss of a model of so many parameters after so many tokens: a floor, and a power of each."""
    return irreducible + size_coefficient*params**-size_exponent + data_coefficient*tokens**-data_exponent


@formula(chapter="07-compute-loss-surface", source="hoffmann2022")
def optimal_params(flops: Flops, size_coefficient: Ratio, data_coefficient: Ratio, size_exponent: Ratio,
                   data_exponent: Ratio, *, per_weight: Flops = 6) -> Count:
    """Parameters with the least loss for a given compute, on a `loss_surface`."""
    return (size_exponent*size_coefficient/(data_exponent*data_coefficient)
            * (flops/per_weight)**data_exponent)**(1/(size_exponent + data_exponent))


@formula(chapter="07-compute-loss-surface", source="hoffmann2022")
def optimal_tokens(flops: Flops, size_coefficient: Ratio, data_coefficient: Ratio, size_exponent: Ratio,
                   data_exponent: Ratio, *, per_weight: Flops = 6) -> Count:
    """Tokens with the least loss for a given compute, on a `loss_surface`."""
    return (data_exponent*data_coefficient/(size_exponent*size_coefficient)
            * (flops/per_weight)**size_exponent)**(1/(size_exponent + data_exponent))


@formula(chapter="07-compute-loss-surface", source="hoffmann2022")
def allocation_exponent(size_exponent: Ratio, data_exponent: Ratio) -> Ratio:
    """Power of compute with which the best size grows; the best number of tokens has the rest, to 1."""
    return data_exponent/(size_exponent + data_exponent)


@formula(chapter="07-compute-loss-surface", source="derived")
def frontier_exponent(size_exponent: Ratio, data_exponent: Ratio) -> Ratio:
    """Power of compute with which the reducible loss falls when size and tokens are chosen best."""
    return size_exponent*data_exponent/(size_exponent + data_exponent)


@formula(chapter="07-compute-loss-surface", source="derived")
def misallocation_penalty(size_ratio: Ratio, size_exponent: Ratio, data_exponent: Ratio) -> Ratio:
    """Reducible loss over its least at the same compute, for a size that is not the best one."""
    return (data_exponent*size_ratio**-size_exponent + size_exponent*size_ratio**data_exponent
            )/(size_exponent + data_exponent)


@formula(chapter="07-compute-loss-surface", source="derived")
def local_size_exponent(params: Count, irreducible: Ratio, size_coefficient: Ratio, size_exponent: Ratio) -> Ratio:
    """Exponent that a power law without a floor would show at this size, with data enough."""
    return size_exponent*size_coefficient*params**-size_exponent/(irreducible + size_coefficient*params**-size_exponent)


@formula(chapter="07-compute-loss-surface", source="derived")
def smallest_params(reducible: Ratio, size_coefficient: Ratio, size_exponent: Ratio) -> Count:
    """Size below which no amount of data brings the loss down to `reducible` above its floor."""
    return (size_coefficient/reducible)**(1/size_exponent)


@formula(chapter="07-compute-loss-surface", source="kaplan2020")
def three_way_exponent(size_exponent: Ratio, batch_exponent: Ratio, step_exponent: Ratio) -> Ratio:
    """Power of compute with which the loss falls when size, batch and steps share it and there is no floor."""
    return 1/(1/size_exponent + 1/batch_exponent + 1/step_exponent)


# 08
Multiple = Annotated[Any, Unit(least=1.0)]                    # 1 or more: times as many, passes over data


@formula(chapter="08-chinchilla-optimality", source="derived")
def overtrained_shrink(token_ratio: Multiple, size_exponent: Ratio, data_exponent: Ratio) -> Ratio:
    """How many times smaller a model can be that reaches the same loss with so many times the optimal tokens."""
    return (1 + size_exponent/data_exponent*(1 - token_ratio**-data_exponent))**(1/size_exponent)


@formula(chapter="08-chinchilla-optimality", source="derived")
def overtraining_overhead(token_ratio: Multiple, size_exponent: Ratio, data_exponent: Ratio) -> Ratio:
    """Training compute of the model of `overtrained_shrink`, over the least for its loss."""
    return token_ratio/(
        1 + size_exponent/data_exponent*(1 - token_ratio**-data_exponent))**(1/size_exponent)


@formula(chapter="08-chinchilla-optimality", source="derived")
def largest_shrink(size_exponent: Ratio, data_exponent: Ratio) -> Ratio:
    """Times that a model can be smaller than the best one of its loss, with all the data in the world."""
    return (1 + size_exponent/data_exponent)**(1/size_exponent)


@formula(chapter="08-chinchilla-optimality", source="sardana2024")
def lifetime_flops(params: Count, tokens: Count, served_tokens: Index, *, per_weight: Flops = 6,
                   per_served: Flops = 2) -> Flops:
    """FLOP of training a model and of running it on `served_tokens` afterwards."""
    return params*(per_weight*tokens + per_served*served_tokens)


@formula(chapter="08-chinchilla-optimality", source="derived")
def justified_serving(token_ratio: Multiple, size_exponent: Ratio, data_exponent: Ratio, *, per_weight: Flops = 6,
                      per_served: Flops = 2) -> Ratio:
    """Tokens served, over the optimal training tokens, for which so much over-training has the least lifetime FLOP."""
    return per_weight*token_ratio*(1 + size_exponent/data_exponent)*(token_ratio**data_exponent - 1)/per_served


@formula(chapter="08-chinchilla-optimality", source="muennighoff2023")
def effective_tokens(unique_tokens: Count, passes: Multiple, repeat_scale: Ratio) -> Ratio:
    """Fresh tokens that are worth as much as some passes over unique ones, if a repeat's worth decays exponentially."""
    return unique_tokens*(1 + repeat_scale*(1 - exp(-(passes - 1)/repeat_scale)))


@formula(chapter="08-chinchilla-optimality", source="derived")
def isoflop_shift(half_width: Ratio, size_exponent: Ratio, data_exponent: Ratio) -> Ratio:
    """Logarithm of a parabola's best size over the true one, to leading order, for a centred grid of sizes."""
    return (size_exponent - data_exponent)*half_width**2/10


# 09
@formula(chapter="09-phase-transitions", source="schaeffer2023")
def exact_match_accuracy(cross_entropy: Ratio, answer_tokens: Count) -> Ratio:
    """Chance that every token of an answer is right, if each is drawn by its chance; cross-entropy a mean over them."""
    return exp(-answer_tokens*cross_entropy)


@formula(chapter="09-phase-transitions", source="derived")
def emergence_onset(test_items: Count, answer_tokens: Count) -> Ratio:
    """Cross-entropy per token at which a test expects its first right answer."""
    return log(test_items)/answer_tokens


@formula(chapter="09-phase-transitions", source="derived")
def accuracy_span(low_accuracy: Share, high_accuracy: Share, loss_exponent: Ratio) -> Ratio:
    """Factor of compute that takes exact match from one accuracy to another, for answers of any length."""
    return (log(1/low_accuracy)/log(1/high_accuracy))**(1/loss_exponent)


@formula(chapter="09-phase-transitions", source="derived")
def break_span(exponent_change: Ratio, *, odds: Ratio = 9) -> Ratio:
    """Factor of scale over which a sum of two powers goes from 10 to 90 % of its change of exponent."""
    return odds**(2/exponent_change)


@formula(chapter="09-phase-transitions", source="hoffmann2022")
def crossover_tokens(params: Count, size_coefficient: Ratio, data_coefficient: Ratio, size_exponent: Ratio,
                     data_exponent: Ratio) -> Ratio:
    """Tokens at which size and data contribute equally to a `loss_surface`: below them data limits, above them size."""
    return (data_coefficient/size_coefficient*params**size_exponent)**(1/data_exponent)


@formula(chapter="09-phase-transitions", source="michaud2023")
def quanta_loss(quanta: Count, tail_exponent: Ratio) -> Ratio:
    """Loss left by the skills not yet learned, in units of the most frequent one's; right to 1/quanta^2."""
    return ((2*quanta + 1)/2)**-tail_exponent/tail_exponent


@formula(chapter="09-phase-transitions", source="michaud2023")
def quanta_learned(tokens: Count, first_share: Ratio, sightings: Ratio, tail_exponent: Ratio) -> Ratio:
    """Skills seen at least so often, on average, in so many examples."""
    return (tokens*first_share/sightings)**(1/(1 + tail_exponent))


@formula(chapter="09-phase-transitions", source="michaud2023")
def tail_data_exponent(tail_exponent: Ratio) -> Ratio:
    """Exponent of the loss in data if a tail of skills is learned by frequency; in skills it is the tail's own."""
    return tail_exponent/(1 + tail_exponent)


@formula(chapter="09-phase-transitions", source="hastie2022")
def underparameterized_risk(features: Count, excess: Group, noise: Ratio) -> Ratio:
    """Squared error of the weights of least squares, mean over normal data, with more samples than features."""
    return noise**2*features/(excess - 1)


@formula(chapter="09-phase-transitions", source="hastie2022")
def overparameterized_risk(samples: Count, excess: Group, noise: Ratio, signal: Ratio) -> Ratio:
    """Squared error of the shortest weights that fit, mean over normal data, with more features than samples."""
    return signal**2*excess/(samples + excess) + noise**2*samples/(excess - 1)


@formula(chapter="09-phase-transitions", source="derived")
def best_ridge(features: Count, noise: Ratio, signal: Ratio) -> Ratio:
    """Penalty on the squared length of the weights that gives the least mean squared error."""
    return features*noise**2/signal**2


@formula(chapter="09-phase-transitions", source="levi2023")
def smallest_curvature(features: Count, samples: Count) -> Ratio:
    """Smallest curvature of the mean squared error on normal samples, over the true one, for large data."""
    return (1 - sqrt(features/samples))**2


@formula(chapter="09-phase-transitions", source="levi2023")
def grokking_delay(curvature: Share) -> Ratio:
    """Time from a small training error to the same test error under gradient flow, over the true curvature's."""
    return log(1/curvature)/(2*curvature)


# 10
@formula(chapter="10-batch-size-dynamics", source="mccandlish2018")
def gradient_noise_scale(gradient_variance: Ratio, gradient_square: Ratio) -> Ratio:
    """Batch at which noise costs a step as much loss as the curvature along the true gradient does.

    That needs both weighted with the curvature, tr(H Sigma) and G'HG; unweighted, it is the usual estimate.
    """
    return gradient_variance/gradient_square


@formula(chapter="10-batch-size-dynamics", source="mccandlish2018")
def noisy_step_gain(batch: Ratio, noise_scale: Ratio) -> Ratio:
    """Share of the best noise-free step that the best step of a batch attains; its rate has the same share."""
    return batch/(batch + noise_scale)


@formula(chapter="10-batch-size-dynamics", source="mccandlish2018")
def gradient_variance_estimate(small_norm: Ratio, big_norm: Ratio, small_batch: Ratio, big_batch: Ratio) -> Ratio:
    """Variance of one example's gradient from the squared norms at two batch sizes, without bias."""
    return (small_norm - big_norm)*small_batch*big_batch/(big_batch - small_batch)


@formula(chapter="10-batch-size-dynamics", source="mccandlish2018")
def gradient_square_estimate(small_norm: Ratio, big_norm: Ratio, small_batch: Ratio, big_batch: Ratio) -> Ratio:
    """Squared norm of the true gradient from the squared norms at two batch sizes, without bias."""
    return (big_batch*big_norm - small_batch*small_norm)/(big_batch - small_batch)


@formula(chapter="10-batch-size-dynamics", source="mccandlish2018")
def steps_to_loss(batch: Ratio, least_steps: Ratio, critical_batch: Ratio) -> Ratio:
    """Optimizer steps to a given loss, at the best rate of the batch."""
    return least_steps*(1 + critical_batch/batch)


@formula(chapter="10-batch-size-dynamics", source="mccandlish2018")
def examples_to_loss(batch: Ratio, least_steps: Ratio, critical_batch: Ratio) -> Ratio:
    """Examples, or tokens, to a given loss, at the best rate of the batch."""
    return least_steps*(batch + critical_batch)


@formula(chapter="10-batch-size-dynamics", source="derived")
def batch_efficiency(batch: Ratio, critical_batch: Ratio) -> Ratio:
    """Least examples to a given loss over those that this batch needs."""
    return critical_batch/(batch + critical_batch)


@formula(chapter="10-batch-size-dynamics", source="derived")
def max_data_parallel_devices(batch: Ratio, copy_tokens: Ratio, tp: Count, pp: Count) -> Ratio:
    """Devices that a batch of tokens keeps busy while each copy of the model gets its threshold of tokens.

    `copy_tokens` is `tokens_to_hide_all_reduce`; a copy is split over tp times pp devices.
    """
    return tp*pp*batch/copy_tokens
