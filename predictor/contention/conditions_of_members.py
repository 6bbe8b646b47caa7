"""The conditions of predictions in compiled code, for one member of one co-location."""

import math

from predictor.regression.compiled import compile_kernel, copy_into, fill
from profiles import ATTRIBUTES

ATTRIBUTE_COUNT = len(ATTRIBUTES)
DISTANCE_COUNT = 3
FAR_CONDITION = 0.3
"""Distance from default traffic, as a share of the ranges on a logarithmic scale, from which it counts as far."""
NEGLIGIBLE_SHARE, TYPICAL_SHARE = 0.01, 0.05  # drops (as a fraction) that are negligible, and that are typical
USUAL_COMPETITORS = 3.0
LEAST_SHARE, MOST_SHARE = 1e-4, 1.0  # smallest and largest plausible spread of the logarithm


@compile_kernel
def write_pressure(table, member, place, columns, pressure):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write, per accelerator of the member, the competitors' service demand in units of its own service time.

    `columns` are those of its accelerators in the table, -1 at the end.
    """
    row = member[place]
    for at in range(len(columns)):
        column = columns[at]
        pressure[at] = 0.0
        if column < 0:
            continue
        for other in member:
            pressure[at] += table.presence[other] * table.queues[other, column] * table.service[other, column]
        pressure[at] -= table.presence[row] * table.queues[row, column] * table.service[row, column]
        pressure[at] /= max(table.service[row, column], 1e-12)


@compile_kernel
def write_neighbours(nf, presence, deviation, nfs, member, place, inputs):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write which NFs share the NIC of the member, as `NeighbourInputs` describes them."""
    fill(inputs, 0.0)
    for other in range(len(member)):
        if other != place and member[other] >= 0:
            row = member[other]
            inputs[nf[row]] += presence[row]
            for at in range(ATTRIBUTE_COUNT):
                inputs[nfs + ATTRIBUTE_COUNT * nf[row] + at] += presence[row] * deviation[row, at]
    copy_into(inputs[nfs * (1 + ATTRIBUTE_COUNT) :], deviation[member[place]])


@compile_kernel
def write_inputs(traffic, kept, pressure, inputs):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Write the conditions of one prediction as coordinates."""
    inputs[0] = math.log(max(traffic[0], 1.0))
    inputs[1] = math.log(max(traffic[1], 1.0))
    inputs[2] = math.log1p(traffic[2] / 100.0)
    inputs[3] = math.log(max(kept, 1e-6))
    for at in range(len(pressure)):
        inputs[4 + at] = math.log1p(pressure[at])


@compile_kernel
def write_distance(deviation, kept, competitors, distance):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write what the spread of one prediction grows with."""
    away = 0.0
    for at in range(ATTRIBUTE_COUNT):
        away += deviation[at] ** 2
    distance[0] = min(math.sqrt(away) / FAR_CONDITION, 1.0)
    distance[1] = math.log((NEGLIGIBLE_SHARE + max(1.0 - kept, 0.0)) / TYPICAL_SHARE)
    distance[2] = math.log(max(competitors, 1.0) / USUAL_COMPETITORS)


@compile_kernel
def spread_at(usual, growth, distance):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """The spread of a prediction at that distance."""
    logarithm = math.log(usual)
    for at in range(DISTANCE_COUNT):
        logarithm += growth[at] * distance[at]
    return math.exp(min(max(logarithm, math.log(LEAST_SHARE)), math.log(MOST_SHARE)))


@compile_kernel
def write_all_inputs(traffic, kept, pressure, inputs):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write the coordinates of each prediction."""
    for row in range(len(kept)):
        write_inputs(traffic[row], kept[row], pressure[row], inputs[row])


@compile_kernel
def write_all_distances(deviation, kept, competitors, distance):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write the distance of each prediction."""
    for row in range(len(kept)):
        write_distance(deviation[row], kept[row], competitors[row], distance[row])


@compile_kernel
def write_all_spreads(usual, growth, distance, spread):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write the spread of each prediction."""
    for row in range(len(spread)):
        spread[row] = spread_at(usual, growth, distance[row])


@compile_kernel
def write_all_pressures(table, member, where, columns, pressure):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write the pressure on each of the positions `where`, shape (N, 2): co-location, member."""
    for row in range(len(where)):
        at, place = where[row]
        write_pressure(table, _present(member[at]), place, columns, pressure[row])


@compile_kernel
def write_all_neighbours(nf, presence, deviation, nfs, member, where, inputs):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write the neighbours of each of the positions `where`, shape (N, 2): co-location, member."""
    for row in range(len(where)):
        at, place = where[row]
        write_neighbours(nf, presence, deviation, nfs, member[at], place, inputs[row])


@compile_kernel
def _present(member):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """The members, without the places at the end that are empty."""
    size = len(member)
    while size > 0 and member[size - 1] < 0:
        size -= 1
    return member[:size]
