"""`planned`: the cheapest plan whose expected SLA violations keep the budget, where all arrivals are known.

    tenants -> classes -> co-locations -> chances of a violation (predictor) -> columns (linear program) -> plan

A column is what one NIC carries: a co-location, and for each of its places the class (workload and SLA) of the tenant
there. The predictor's error model says how likely a tenant of a class falls short of its SLA at a place. A linear
program over all columns, with one row for the budget, bounds the cost of every plan (`leader.py`). Its fractions are
rounded one after the other, and a search moves tenants between NICs until the plan keeps the budget on fewer NICs
(`search.py`). What is kept back of the budget is in `reserve.py`. Read `strategy.py` first."""
