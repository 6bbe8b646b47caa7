"""Why an NF is slow: its bottleneck in a co-location, and the match rate at which the bottleneck changes.

This is what `placer diagnose` does.
"""

# %%
from placer.explain.bottleneck import diagnose
from placer.inputs.models import open_models
from profiler.simulated import SimulatedTestbed
from profiles import Workload

# %% The models of the recorded simulated BlueField-2; a folder of your own models works, too.
models = open_models(None, print)
monitor, nids = Workload("FlowMonitor", models.default_traffic), Workload("NIDS", models.default_traffic)

# %% Throughput of the co-located NFs, and the drop by contention for each resource.
(predictions,) = models.predictors["tomur"].predict([(monitor, nids)])
for workload, prediction in zip((monitor, nids), predictions, strict=True):
    drops = {name: f"{drop:.0f} kpps" for name, drop in prediction.drops.items()}
    print(workload.nf, f"{prediction.throughput_kpps:.0f} of {prediction.solo_kpps:.0f} kpps", drops)

# %% Where the bottleneck changes as regex matches become more frequent, by prediction and on the simulated card.
diagnosis = diagnose(models.predictors["tomur"], monitor, [nids], {"mtbr": (0, 1100)}, testbed=SimulatedTestbed())
for shift in diagnosis.shifts:
    print(f"from {shift.before} to {shift.after} at {shift.at:.0f} matches/MB")
agreed = [prediction.bottleneck == prediction.true_bottleneck for prediction in diagnosis.along["mtbr"]]
print(f"predicted and true bottleneck agree at {sum(agreed)} of {len(agreed)} match rates")
