"""How well chains are predicted: from single functions, after ten runs of chains, by models trained on the chains.

Errors are of single runs, %, so that they compare with the noise of repeats; beside them stand those of the means of
repeats, as van Rossem et al. count.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import least_squares
from sklearn.ensemble import GradientBoostingRegressor

from benches.chain_settings import MeasuredSetting, MeasuredSingles, kinds, throughputs, workload
from predictor.chains.chain_fitting import fit_chain
from predictor.chains.placed_chain import PlacedChain
from predictor.chains.profiled_nf import ProfiledNf
from profiler.chains.plan import MeasuredChain
from profiles.arrays import Floats

Rows = NDArray[np.intp]

FOLDS = 5
LEAST_COST = 1e-9


def cross_validated(settings: Sequence[MeasuredSetting], nfs: Sequence[str], seed: int) -> tuple[str, Floats]:
    """The better of the models below, and what it predicts (kpps) of each setting, shape (settings,). A chain is left
    out at all of its traffics together. That the better one is chosen by the very errors that are reported favours
    it."""
    keys = list(dict.fromkeys(setting.key for setting in settings))
    fold_of = dict(zip(keys, np.random.default_rng(seed).permutation(len(keys)) % FOLDS, strict=True))
    fold = np.array([fold_of[setting.key] for setting in settings])
    predicted = {}
    for name, model in MODELS.items():
        predicted[name] = np.empty(len(settings))
        for number in np.unique(fold):
            left_out = np.flatnonzero(fold == number)
            predicted[name][left_out] = model(settings, nfs, np.flatnonzero(fold != number), left_out)
    measured = np.array([setting.kpps.mean() for setting in settings])
    best = min(predicted, key=lambda name: float(np.abs(predicted[name] / measured - 1).mean()))
    return best, predicted[best]


def costs_of_chains(settings: Sequence[MeasuredSetting], nfs: Sequence[str], learnt: Rows, asked: Rows) -> Floats:
    """Per traffic a cost of each function, of the source, and of a ring: those that fit the chains best. On a core
    costs add, the slowest core counts."""
    visits = np.array([_visits(setting, nfs) for setting in settings])
    traffic = np.array([hash(setting.load.traffic) for setting in settings])
    logarithm = np.array([np.log(setting.kpps).mean() for setting in settings])
    predicted = np.full(len(asked), logarithm[learnt].mean())
    for value in np.unique(traffic[asked]):
        known, wanted = learnt[traffic[learnt] == value], traffic[asked] == value
        if len(known):
            costs = _fitted(visits[known], logarithm[known])
            predicted[wanted] = _log_kpps(visits[asked[wanted]], costs)
    return np.asarray(np.exp(predicted))


def boosting(settings: Sequence[MeasuredSetting], nfs: Sequence[str], learnt: Rows, asked: Rows) -> Floats:
    """Gradient boosting on where functions are, packet size and flows, of logarithms."""
    inputs = np.array(
        [
            [*_visits(setting, nfs).ravel(), *np.log(list(setting.at.values())), len(setting.load.cores)]
            for setting in settings
        ]
    )
    logarithm = np.array([np.log(setting.kpps).mean() for setting in settings])
    fitted = GradientBoostingRegressor(n_estimators=300, max_depth=4, random_state=0)
    fitted.fit(inputs[learnt], logarithm[learnt])
    return np.asarray(np.exp(fitted.predict(inputs[asked])))


MODELS: dict[str, Callable[[Sequence[MeasuredSetting], Sequence[str], Rows, Rows], Floats]] = {
    "costs": costs_of_chains,
    "boosting": boosting,
}


def _visits(setting: MeasuredSetting, nfs: Sequence[str]) -> Floats:
    """Packets per core and function, then those that enter by the source and by a ring; shape (2, functions + 2)."""
    visits = np.zeros((2, len(nfs) + 2))
    for core, stages in enumerate(setting.load.cores):
        for at in stages:
            visits[core, nfs.index(setting.chain.stages[at].nf)] += setting.chain.stages[at].share
        visits[core, len(nfs) + (core > 0)] = setting.chain.stages[min(stages)].share
    return visits


def _log_kpps(visits: Floats, costs: Floats) -> Floats:
    return np.asarray(-np.log(np.maximum((visits @ np.exp(costs)).max(axis=1), LEAST_COST)))


def _fitted(visits: Floats, logarithm: Floats) -> Floats:
    """Logarithms of costs, drawn to one mean where chains say nothing."""
    start = np.full(visits.shape[2], -logarithm.mean() - np.log(2))

    def residuals(costs: Floats) -> Floats:
        return np.concatenate([_log_kpps(visits, costs) - logarithm, 0.01 * (costs - start)])

    return np.asarray(least_squares(residuals, start, loss="soft_l1", f_scale=0.1).x)


TEN = 10
DRAWS = 20  # random choices of ten chain runs
ALONE_LIMIT, TEN_LIMIT, CONTROL_LIMIT = 8.0, 5.0, 0.2
DIRECT_LIMIT, NOISE_LIMIT = 1.3, 1.0
KINDS = ("pairs", "triples", "pipelines")
ALONE, CORRECTED, DIRECT, REPEATED = (
    "from profiles alone",
    "after 10 chain runs",
    "trained on the chains",
    "noise of repeats",
)
OWN, OWN_CORRECTED = "control: own profile", "control: corrected"


@dataclass(frozen=True)
class ChainErrors:
    """The table of errors, and what was predicted of every chain."""

    table: pd.DataFrame
    """A row per way of predicting: mean absolute error (%) by kind of chain and of all, its spread and of what it is,
    the median over chains, the error of the means of repeats, and the largest error that is asked for."""
    predictions: pd.DataFrame  # a row per chain and traffic


def chain_errors(
    singles: MeasuredSingles, settings: Sequence[MeasuredSetting], measured: Iterable[MeasuredChain], seed: int
) -> ChainErrors:
    """All predictions of chains, compared with their runs."""
    alone = predicted_by(singles, settings)
    after = _after_ten(singles, settings, np.random.default_rng([seed, TEN]))
    nfs = sorted({stage.nf for setting in settings for stage in setting.load.stages})
    model, direct = cross_validated(settings, nfs, seed)
    rows = [
        _row(ALONE, settings, alone),
        _after_row(settings, after),
        _row(f"{DIRECT} ({model})", settings, direct),
        _mean_row(REPEATED, settings, np.array([repeat_error(setting.kpps) for setting in settings])),
    ]
    alike = np.array([setting.drops_as_alone for setting in settings])
    if not alike.all() and alike.any():
        rows.insert(
            1,
            _row(f"{ALONE}, drops as alone", [setting for setting in settings if setting.drops_as_alone], alone[alike]),
        )
    rows += _control(measured)
    return ChainErrors(_with_limits(pd.DataFrame(rows)), _predictions(settings, alone, _mean_of_known(after), direct))


def predicted_by(singles: MeasuredSingles, settings: Sequence[MeasuredSetting]) -> Floats:
    """What single functions alone predict (kpps) of each, shape (settings,)."""
    family = singles.family()
    return np.array([family.predict(setting.chain, setting.at) for setting in settings])


def repeat_error(kpps: Floats) -> float:
    """Mean absolute error (%) of one run as predicted by the mean of the others; NaN of a single run."""
    if len(kpps) < 2:
        return float("nan")
    return 100 * float(np.mean(np.abs((kpps.sum() - kpps) / (len(kpps) - 1) / kpps - 1)))


def drawn_runs(settings: Sequence[MeasuredSetting], rng: np.random.Generator) -> list[tuple[int, int]]:
    """Ten runs of different chains as (setting, run), at random, but all functions are first, and later, alike."""
    order = rng.permutation(len(settings)).tolist()
    used: Counter[object] = Counter()
    drawn: list[tuple[int, int]] = []
    while order and len(drawn) < TEN:
        best = min(
            order,
            key=lambda at: sum(used[feature] for feature in _balanced(settings[at])) / len(settings[at].load.stages),
        )
        used.update(_balanced(settings[best]))
        drawn.append((best, int(rng.integers(len(settings[best].kpps)))))
        order = [at for at in order if settings[at].key != settings[best].key]
    return drawn


def _balanced(setting: MeasuredSetting) -> list[object]:
    """What the runs that are drawn have about equally often: functions in front and behind, and kinds of chains."""
    return [setting.kind, *((stage.nf, at == 0) for at, stage in enumerate(setting.load.stages))]


def _after_ten(singles: MeasuredSingles, settings: Sequence[MeasuredSetting], rng: np.random.Generator) -> Floats:
    """What is predicted after each draw of ten runs, shape (draws, settings); NaN for the chains that were drawn."""
    predicted = np.full((DRAWS, len(settings)), np.nan)
    for number in range(DRAWS):
        runs = drawn_runs(settings, rng)
        family = singles.family().fit([settings[at].run(run) for at, run in runs])
        known = {settings[at].key for at, _ in runs}
        for at, setting in enumerate(settings):
            if setting.key not in known:
                predicted[number, at] = family.predict(setting.chain, setting.at)
    return predicted


def _mean_of_known(predicted: Floats) -> Floats:
    """The mean over draws of what is predicted of each setting; NaN where every draw had its chain."""
    known = np.isfinite(predicted)
    sums = np.where(known, predicted, 0.0).sum(axis=0)
    return np.asarray(np.divide(sums, known.sum(axis=0), out=np.full(len(sums), np.nan), where=known.any(axis=0)))


def _errors(settings: Sequence[MeasuredSetting], predicted: Floats) -> Floats:
    """Mean absolute error (%) over the runs of each setting, shape (settings,)."""
    return np.array(
        [100 * np.mean(np.abs(p / setting.kpps - 1)) for setting, p in zip(settings, predicted, strict=True)]
    )


def _row(name: str, settings: Sequence[MeasuredSetting], predicted: Floats) -> dict[str, object]:
    """The errors of one prediction of each setting; NaN where there is none."""
    means = np.array([setting.kpps.mean() for setting in settings])
    of_means = 100 * float(np.nanmean(np.abs(predicted / means - 1)))
    return _mean_row(name, settings, _errors(settings, predicted)) | {"of_means_pct": of_means}


def _mean_row(name: str, settings: Sequence[MeasuredSetting], errors: Floats) -> dict[str, object]:
    """Means by kind; the spread is the standard error of the mean over chains."""
    columns = {"chain": [str(setting.key) for setting in settings], "kind": kinds(settings), "error": errors}
    table = pd.DataFrame(columns)[np.isfinite(errors)]
    of_chains = table.groupby("chain")["error"].mean().to_numpy(float)
    of_kind = {kind: table.loc[table["kind"] == kind, "error"].to_numpy(float) for kind in KINDS}
    return {
        "prediction": name,
        **{f"{kind}_pct": of_kind[kind].mean() if len(of_kind[kind]) else np.nan for kind in KINDS},
        "all_pct": float(table["error"].mean()),
        "plus_minus": _standard_error(of_chains),
        "of": f"standard error, {len(of_chains)} chains",
        "median_pct": float(table["error"].median()),
    }


def _after_row(settings: Sequence[MeasuredSetting], predicted: Floats) -> dict[str, object]:
    """Means over draws of the errors of chains that were not drawn."""
    rows = pd.DataFrame([_row(CORRECTED, settings, kpps) for kpps in predicted])
    means = {name: float(rows[name].mean()) for name in rows.columns if name.endswith("_pct")}
    of = f"standard deviation, {len(rows)} draws"
    return {"prediction": CORRECTED, **means, "plus_minus": float(rows["all_pct"].std(ddof=1)), "of": of}


def _control(measured: Iterable[MeasuredChain]) -> list[dict[str, object]]:
    """Chains from their own profiles, of all runs but two, without and with a correction by one of these two."""
    groups: dict[tuple[str, object], list[MeasuredChain]] = {}
    for setting in measured:
        groups.setdefault((setting.load.label, setting.load.cores), []).append(setting)
    errors = [found for group in groups.values() if (found := _control_errors(group))]
    if not errors:
        return []
    of = f"standard error, {len(errors)} chains and functions"
    return [
        {"prediction": name, "all_pct": float(of_one.mean()), "plus_minus": _standard_error(of_one), "of": of}
        for name, of_one in zip((OWN, OWN_CORRECTED), np.array(errors).T, strict=True)
    ]


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def _control_errors(group: Sequence[MeasuredChain]) -> tuple[float, float] | None:
    """Mean absolute errors (%) of the last runs of one chain, without and with the correction."""
    runs = min(len(setting.runs) for setting in group)
    if runs < 3 or len(group) < 2:
        return None
    at = np.array([list(workload(setting.load.traffic).values()) for setting in group])
    kpps = np.array([throughputs(setting)[:runs] for setting in group])
    learnt, profiled_at = kpps[:, :-2].ravel(), np.repeat(at, runs - 2, axis=0)
    names = tuple(workload(group[0].load.traffic))
    profiles = {"chain": ProfiledNf.fit("chain", names, profiled_at, learnt, regressor="smooth")}
    columns = dict(zip(names, at.T, strict=True))
    plain = fit_chain(profiles, PlacedChain.of(["chain"]))
    corrected = fit_chain(profiles, PlacedChain.of(["chain"]), measured_at=columns, measured=kpps[:, -2])
    without, with_it = (
        100 * float(np.mean(np.abs(model.predict(columns).predicted / kpps[:, -1] - 1))) for model in (plain, corrected)
    )
    return without, with_it


def _with_limits(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the largest errors that are asked for, where any are."""
    found = dict(zip(table["prediction"], table["all_pct"].to_numpy(float), strict=True))
    direct = next(value for name, value in found.items() if name.startswith(DIRECT))
    limits = {ALONE: min(ALONE_LIMIT, max(DIRECT_LIMIT * direct, found[REPEATED] + NOISE_LIMIT)), CORRECTED: TEN_LIMIT}
    if OWN in found:
        limits[OWN_CORRECTED] = found[OWN] + CONTROL_LIMIT
    return table.assign(limit_pct=table["prediction"].map(limits)).round(2)


def _predictions(settings: Sequence[MeasuredSetting], alone: Floats, after: Floats, direct: Floats) -> pd.DataFrame:
    rows = []
    for at, setting in enumerate(settings):
        rows.append(
            {
                "chain": setting.load.label,
                "kind": setting.kind,
                **setting.at,
                "runs": len(setting.kpps),
                "kpps": round(float(setting.kpps.mean()), 2),
                "repeats_pct": round(repeat_error(setting.kpps), 2),
                "drops_as_alone": setting.drops_as_alone,
                "alone_kpps": round(float(alone[at]), 2),
                "after_10_kpps": round(float(after[at]), 2),
                "direct_kpps": round(float(direct[at]), 2),
            }
        )
    return pd.DataFrame(rows)
