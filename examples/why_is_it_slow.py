# %% [markdown]
# # Why is this NF slow?
# What `placer diagnose` does: the resource that binds an NF in its company, and where along its traffic that changes.

# %%
from placer.explain.bottleneck import Diagnostician
from placer.inputs.models import open_models
from profiler.simulated import SimulatedTestbed
from profiles import Workload

# %% The models of the recorded simulated BlueField-2; a folder of your own does as well.
models = open_models(None, print)
monitor, nids = Workload("FlowMonitor", models.default_traffic), Workload("NIDS", models.default_traffic)

# %% What company costs, taken apart by resource.
(told,) = models.predictors["tomur"].predict([(monitor, nids)])
for workload, prediction in zip((monitor, nids), told, strict=True):
    drops = {name: f"{drop:.0f} kpps" for name, drop in prediction.drops.items()}
    print(workload.nf, f"{prediction.throughput_kpps:.0f} of {prediction.solo_kpps:.0f} kpps", drops)

# %% Where the bottleneck shifts as regex matches become more frequent, and what the card itself says.
diagnosis = Diagnostician(models.predictors["tomur"], SimulatedTestbed()).diagnose(monitor, [nids], {"mtbr": (0, 1100)})
for shift in diagnosis.shifts:
    print(f"from {shift.before} to {shift.after} at {shift.at:.0f} matches/MB")
agreed = [one.bottleneck == one.true_bottleneck for one in diagnosis.along["mtbr"]]
print(f"predicted and true bottleneck agree at {sum(agreed)} of {len(agreed)} match rates")
